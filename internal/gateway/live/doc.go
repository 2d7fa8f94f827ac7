// Package live keeps the picture of a swarm that pages and terminals watch: the
// newest of each part, and which parts changed since a revision. Watchers are
// told of changes only; one that was slow for a while gets the newest of all it
// missed, once, and nobody waits for it.
package live
