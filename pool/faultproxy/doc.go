// Package faultproxy is a TCP proxy that misbehaves on command: it delays, loses
// time, throttles, falls silent, resets, half-closes and refuses. Put it between
// two programs on real sockets to see how they take it. What it does can change
// at any moment and applies to connections that already live.
//
// A proxy ends TCP on both sides, so some faults are imitations:
//
//   - Silence holds bytes back, and the news of closing with them, until it ends; the
//     kernel still acknowledges what it has buffered, and still completes the
//     handshake of new connections.
//   - Loss is lateness: a chunk arrives one or more retransmission timeouts later,
//     and what follows waits behind it.
//   - Refuse closes the listening socket, so the refusal is the kernel's own, and
//     opens it again at the same address afterwards.
//
// Each proxy is driven by method calls, by one-line commands, or by a script; see [ParseScript].
package faultproxy
