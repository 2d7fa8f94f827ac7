// Package answer computes one answer over the stages of a route and keeps it
// alive when stages die.
//
// The gateway sits between the stages (a star). For every boundary between two
// stages it keeps the hidden states that crossed it. An answer is a level, not
// a sequence of events: at any moment there are T tokens, and each stage holds
// the state of some number of positions. One pass (pass.go) brings every stage
// to T and draws the next token; how far behind a stage is does not matter.
// That is the whole recovery: replace the stage that died by one that holds
// nothing (rescue.go), and make the pass again. A substitute is fed from the
// boundary log, a whole copy from the tokens, a reconnected stage from where
// it stood, all by the same lines of code.
//
//	tokens ──► stage 0 ──► log[b1] ──► stage 1 ──► log[b2] ──► stage 2 ──► token
//	  ▲                                                                      │
//	  └──────────────────────────────────────────────────────────────────────┘
//
// Replay is a prefill and grows with the context. Where a holder has room to
// spare, a shadow (shadow.go) is fed from the same logs in the background, and a
// substitute that was a shadow holds all but the last few positions.
//
// An answer reserves room as it gets longer (room.go). When there is none it leaves
// all nodes, waits its turn, and goes on by the same replay, though nothing failed.
//
// What it refuses to do: text, HTTP, choosing nodes. Routes come from a Router,
// sessions from an Opener.
package answer
