package pool

import "time"

// Every limit that is not a setting, each with the threat it answers.
const (
	// maxPingTimeout is the longest time that one PING may go unanswered: two
	// of them and an interval must end before a silent peer has cost 2.5 s.
	maxPingTimeout = 1100 * time.Millisecond
	// maxSilence bounds how long the default settings put up with a peer that
	// says nothing at all, whatever its round trip.
	maxSilence = 2400 * time.Millisecond
	// batchBytes is how much the send loop takes from the queue at once: an
	// urgent frame waits behind no more than this, plus what the kernel holds.
	// One large frame: what is copied, encrypted and written together then stays
	// in the processor's nearest caches, which is worth a tenth of the throughput.
	batchBytes = 32 << 10
	// batchFrames bounds the same in frames, so that a batch of tiny frames
	// does not hold the queue's lock for long.
	batchFrames = 256
	// notSentLowat is how many bytes the kernel may hold unsent (Linux): a
	// PING must not wait behind megabytes that are queued below us.
	notSentLowat = 128 << 10
	// maxReplies bounds the CLOSE answers to frames for unknown sessions that
	// wait to be sent: a peer cannot make us queue more by sending garbage.
	maxReplies = 64
	// ackEvery is the most credit, in bytes, that a receiver holds back before
	// it returns it. Both sides derive the largest message from it.
	ackEvery = 64 << 10
	// maxHeld bounds what one connection may make us keep in all its sessions'
	// inboxes together: each window is bounded, but a peer may open many.
	maxHeld = 256 << 20
	// consumerStall ends a session whose queue is full while its owner has
	// read nothing for so long: memory is not a place to park.
	consumerStall = 5 * time.Minute
	// closeLinger bounds how long a finished connection may take to flush what
	// it still has and to say goodbye.
	closeLinger = time.Second
	// openGrace is how long a draining node still takes sessions: longer than
	// its GOAWAY travels.
	openGrace = time.Second
	// readerVerdict is how long a failed write waits for the reader to say why.
	readerVerdict = 100 * time.Millisecond
)

// maxWanted bounds how many connections a gateway can ask of a reverse node.
const maxWanted = 64

// maxMessage is the largest message that a window of so many bytes carries: a
// receiver may hold back up to ackThreshold of credit.
func maxMessage(window int) int { return window - ackThreshold(window) }

func ackThreshold(window int) int { return min(window/4, ackEvery) }

func ackMessages(queue int) int { return max(1, queue/4) }
