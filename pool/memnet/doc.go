// Package memnet is a network inside one process, for tests of code that talks
// over net.Conn. It runs in the fake time of testing/synctest as well as in real
// time, starts no goroutine of its own, and carries TLS (unlike net.Pipe it
// buffers, so two sides may write at the same moment).
//
// Hosts are names; an address is host:port, and a host needs no declaration.
// Between each two hosts lies a [Link] with delay, jitter, loss, bandwidth and
// buffer. On top of that, hosts and pairs of hosts can be made to refuse, to fall
// silent in one or both directions, to read slowly, and connections can be cut.
// Everything can change while connections live.
//
// It imitates what a program sees of TCP, not TCP itself:
//
//   - Loss shows as lateness: a lost packet arrives one retransmission timeout later
//     and holds up what follows it.
//   - Silence is a black hole: nothing arrives, nobody is told. When it ends, what was
//     held back arrives, unless an end has given up in the meantime.
//   - Close delivers what was written before it, then io.EOF. Writes to a closed
//     peer vanish until the news has travelled, then fail with EPIPE. (A real
//     kernel answers unread data by a reset and may thereby lose the last words;
//     that is left to tests on real sockets.)
//   - The accepting side buffers at most Link.Buffer bytes in flight and unread
//     together; a writer waits when they are used up.
//
// Randomness comes from the seed and is drawn per connection and direction, so a
// run whose connections are made in the same order sees the same network.
//
// A warning for fake time: crypto/tls holds a mutex while it waits for the network, and a
// goroutine that waits for a mutex keeps fake time from passing. So finish
// Handshake before reading and writing at once, and let one goroutine write.
package memnet
