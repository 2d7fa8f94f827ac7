// Package test holds what only real processes can show: it starts swarms with
// `hecate up`, uses them as clients do, and kills their parts.
package test
