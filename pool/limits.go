package pool

import "time"

// maxPingTimeout is the longest time that one PING may go unanswered: two of
// them and an interval stay below the 2.5 s within which a silent peer must be
// found.
const maxPingTimeout = 1100 * time.Millisecond
