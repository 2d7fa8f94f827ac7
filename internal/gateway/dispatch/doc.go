// Package dispatch knows which nodes a request should use now. It owns what
// changes from second to second: telemetry, what the gateway measured itself,
// the work in flight, circuits. Every decision is package swarm's; this is the
// shell around it that has the lock and the clock.
//
//	plan, membership ──► Dispatcher ◄── measured steps, failures
//	                        │
//	                        ▼
//	              routes, rescue routes, patience
package dispatch
