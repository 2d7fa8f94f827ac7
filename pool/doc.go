// Package pool carries sessions between a gateway and its nodes over a few
// long-lived encrypted connections, and stays calm while the control plane
// changes its mind about which nodes there should be.
//
// # What it does
//
// A gateway makes a [Pool] and gives it the desired map: which nodes (groups)
// there are, and at which endpoints. The pool keeps a small number of
// connections (writers) to every group, restores the ones it loses, replaces
// the ones that grow old, and moves to a new map as a whole, with fresh
// connections, in one atomic step. [Pool.Open] binds a session to one of them. A
// session is a conversation in messages: one Send is one Recv at the other end,
// in order, whatever the size up to [Session.MaxMessage]. Many sessions share a
// connection, and none can hold up the others: messages travel in chunks that
// take turns, each session has its own window, and control frames overtake data.
//
// A node calls [Serve] and handles each inbound session in its own goroutine. A
// node that cannot accept connections uses [Server.DialReverse] against
// [Pool.ServeReverse] instead; everything else is the same.
//
// Both sides speak TLS 1.3 with certificates of one authority and say in a
// versioned hello who they are; the two must agree. Package wire describes the
// bytes.
//
// # What it refuses to do
//
// It knows nothing of what it carries. It has no users, quotas or business
// limits. It never moves a session to another connection silently: a session
// whose connection dies ends at once, with [CodeLost], and its owner resumes it
// elsewhere if it can ([OpenOptions].Rescue). It is no promise that no session is
// ever dropped: a draining connection is closed at a deadline, with
// [CodeDraining], and a consumer that stops reading is cut off, with
// [CodeOverloaded]. It never drops one message out of an ordered stream. It never
// blocks a frame of one session for another one, nor for the control plane.
//
// # A session
//
//	      Close, CLOSE, CANCEL, loss, broken rule
//	open -----------------------------------------> ended (Done, Err)
//
// Close with any code but [CodeCancelled] delivers what was sent before;
// CodeCancelled discards it, on both sides, and overtakes it. After the peer's
// close, what had arrived can still be received. Send waits for the peer's window
// as long as its context allows, and for room in the connection's queue at most
// send_wait; an error means that nothing of the message was sent.
//
// # State machines
//
// Each has its own file, and nothing else assigns its state.
//
//	contour (contour.go), what a writer is to the pool
//
//	        answered a PING                 swap, replacement, GOAWAY, removal
//	  warm -----------------> active -----------------------------> draining --> removed
//	     \___________________________________________________________^
//
//	replacement (replacement.go), independent of it, in the registry
//
//	        prepare             commit
//	  open ---------> preparing --------> retiring
//	       <---------
//	         abort
//
//	generation (generation.go, coordinator.go), one epoch of the whole pool
//
//	  bootstrap --> warmup --> activation --> drain --> retire
//	                   \__________\____> dropped: superseded, expired, cancelled
//
//	circuit (circuit.go), one endpoint as it answered
//
//	          fast tries failed              pause over
//	  closed ------------------> open ------------------> half-open
//	     ^_________________________________________________/
//	            a writer lived beyond flap_window's start
//
//	health (health.go), one writer's path
//
//	          a missed PING, or average round trip > 2 x lowest
//	  healthy --------------------------------------------------> degraded
//	          <--------------------------------------------------
//	                  four good answers in a row
//
//	suspicion (suspicion.go), one group that keeps somebody waiting
//
//	          Suspect, an overdue PING
//	trusted ---------------------------> doubted --> silent: closed
//	        <--------------------------          no word of it, but of others
//	            any word of it
//
//	fair share (fairshare.go), one writer's queue
//
//	        a quarter full
//	  calm ----------------> pressed
//	       <----------------
//	         a tenth full
//
// # Who owns what
//
// The Pool owns the inventory: writers, contours, policy state. The coordinator
// owns the desired map and the active and pending generation. The registry owns
// who is bound where, and the replacement state. A link's send loop owns its
// outbound bytes, its receive loop the inbound ones, its keeper the time. One
// goroutine, the governor, takes every control decision by comparing what is with
// what should be; connects run beside it and report back. Nothing in the path of
// a frame waits for any of them: a bind reads an immutable list of candidates and
// takes the registry's lock only, a frame finds its session without any lock.
//
// Lock order, everywhere:
//
//	writers (Pool.inv) -> registry (registry.mu) -> coordinator (coordinator.mu)
//
// No I/O, no wait and no call out happens under these. The locks of a session and
// of a connection's queue are leaves: a session's lock is never held while a
// queue's is taken, nor the other way round. Activating a generation takes all
// three in order, re-checks everything it was judged by, and changes all or
// nothing.
//
// # Watching it
//
// [Pool.Snapshot] has every counter and state, [Pool.Ready] says whether a group
// can be used and what is missing, and [Config].Observe receives an [Event] for
// everything that happens, each with a String for people. docs/pool.md describes
// the settings.
//
// Time is the time package's, so a pool on an in-memory network (package memnet)
// runs in the fake time of testing/synctest, whole.
package pool
