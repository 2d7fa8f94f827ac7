package pool

import "sync/atomic"

// dropReason says why a frame or an answer was dropped. Each has a counter.
type dropReason int

const (
	dropUnknown   dropReason = iota // frame for a session that is unknown or over
	dropOverload                    // frame that broke its session's window
	dropType                        // frame of a type this version does not know
	dropPong                        // PONG replaced by a newer one before it left
	dropReply                       // CLOSE answer for an unknown session, too many waiting
	dropAckExcess                   // credit returned that was never spent
	dropPayload                     // control frame with a malformed payload
	dropRefused                     // OPEN that was refused
	dropReasons
)

var dropNames = [dropReasons]string{
	dropUnknown: "unknown_session", dropOverload: "overloaded", dropType: "unknown_type",
	dropPong: "pong_overtaken", dropReply: "reply_overflow", dropAckExcess: "ack_excess",
	dropPayload: "bad_payload", dropRefused: "open_refused",
}

func (r dropReason) String() string { return dropNames[r] }

// endReason says why a session ended, finer than the code that the peer sees.
type endReason int

const (
	endLocal      endReason = iota // our side closed
	endCancelled                   // our side cancelled
	endRemote                      // the peer closed normally, or with an application's code
	endRemoteGone                  // the peer cancelled
	endRefused                     // the peer did not take the session
	endOverloaded                  // window broken, at either end
	endStalled                     // our consumer stopped reading
	endLost                        // the connection died
	endForced                      // a drain reached its deadline
	endShutdown                    // this side closes, or the peer does
	endCutover                     // the fallback mode changed
	endProtocol                    // the peer broke the session's rules
	endUnknown                     // the peer did not know the session
	endInternal                    // the handler panicked, here or there
	endReasons
)

var endNames = [endReasons]string{
	endLocal: "local", endCancelled: "cancelled", endRemote: "remote", endRemoteGone: "remote_cancelled",
	endRefused: "refused", endOverloaded: "overloaded", endStalled: "consumer_stalled", endLost: "writer_lost",
	endForced: "force_closed", endShutdown: "shutdown", endCutover: "cutover", endProtocol: "protocol",
	endUnknown: "unknown_session", endInternal: "internal",
}

func (r endReason) String() string { return endNames[r] }

// lossReason says why a connection ended. Each has a counter.
type lossReason int

const (
	lossPeerClosed lossReason = iota // the peer closed with sessions on it, or early
	lossIdleClose                    // the peer closed an idle connection: a normal event
	lossReset                        // read or write failed
	lossSilent                       // PINGs unanswered
	lossProtocol                     // the stream broke: sequence, checksum, length
	lossRetired                      // we closed it, having drained it
	lossForced                       // we closed it at its deadline
	lossShutdown                     // the pool closes
	lossDiscarded                    // it was connected for nothing: superseded or not wanted any more
	lossReasons
)

var lossNames = [lossReasons]string{
	lossPeerClosed: "peer_closed", lossIdleClose: "idle_close", lossReset: "reset", lossSilent: "silent",
	lossProtocol: "protocol", lossRetired: "retired", lossForced: "forced", lossShutdown: "shutdown",
	lossDiscarded: "discarded",
}

func (r lossReason) String() string { return lossNames[r] }

// ours says that the pool itself ended the connection.
func (r lossReason) ours() bool {
	return r == lossRetired || r == lossForced || r == lossShutdown || r == lossDiscarded
}

// failure says whether the end of the connection was somebody's fault.
func (r lossReason) failure() bool {
	return r == lossPeerClosed || r == lossReset || r == lossSilent || r == lossProtocol
}

// counters are shared by all connections of one pool or server, so that sums
// survive their owners. Hot counters are added to once per batch.
type counters struct {
	drops          [dropReasons]atomic.Uint64
	ends           [endReasons]atomic.Uint64
	losses         [lossReasons]atomic.Uint64
	probes         [probeOutcomes]atomic.Uint64
	opened         atomic.Uint64
	framesSent     atomic.Uint64
	bytesSent      atomic.Uint64
	framesReceived atomic.Uint64
	bytesReceived  atomic.Uint64
	pingsSent      atomic.Uint64
	pingsMissed    atomic.Uint64
	buffered       atomic.Int64
}

func (c *counters) drop(r dropReason) { c.drops[r].Add(1) }

func (c *counters) export(s *Snapshot) {
	s.SessionsOpened = c.opened.Load()
	s.Drops = byName(dropNames[:], func(i int) uint64 { return c.drops[i].Load() })
	s.SessionsClosed = byName(endNames[:], func(i int) uint64 { return c.ends[i].Load() })
	s.WriterLosses = byName(lossNames[:], func(i int) uint64 { return c.losses[i].Load() })
	s.Probes = byName(probeNames[:], func(i int) uint64 { return c.probes[i].Load() })
	s.PingsSent, s.PingsMissed = c.pingsSent.Load(), c.pingsMissed.Load()
	s.FramesSent, s.FramesReceived = c.framesSent.Load(), c.framesReceived.Load()
	s.BytesSent, s.BytesReceived = c.bytesSent.Load(), c.bytesReceived.Load()
	s.BufferedBytes = c.buffered.Load()
}

// byName names every counter, also those at 0: a metric that appears with its
// first fault cannot be alerted on.
func byName(names []string, value func(int) uint64) map[string]uint64 {
	m := make(map[string]uint64, len(names))
	for i, name := range names {
		m[name] = value(i)
	}
	return m
}
