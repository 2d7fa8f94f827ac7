// Package bench is what `hecate bench` measures on a whole swarm: what it costs
// to run a model through stages instead of alone (stages.go), and what a client
// sees when a node dies in the middle of an answer (failover.go). The swarms are
// real: `hecate up` in child processes, asked over HTTP as any client would.
//
// The data plane by itself is measured in package poolbench; order statistics,
// marks and tables are in package measure.
package bench
