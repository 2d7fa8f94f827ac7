package weights

import "time"

const (
	chunk        = 64 << 10         // bytes between two looks at the rate limit
	maxManifest  = 64 << 20         // bytes: 100,000 tensors; a catalogue must not make us read more
	maxQuestion  = 256 << 10        // bytes of a node's question: a thousand pieces and who to avoid
	maxTransfers = 16               // at once from one sender: more would only slow each other
	stalled      = 20 * time.Second // without a byte: the transfer is cut and taken up again
	claimTime    = 10 * time.Second // a node that takes nothing for so long has lost its turn
	askAgain     = 300 * time.Millisecond
	mostLeads    = 8             // pieces that a node is told of at once
	leadTime     = claimTime / 2 // what it was told is forgotten: its turn may be over
	partSuffix   = ".part"
	wholeSuffix  = ".gguf"
	listSuffix   = ".manifest"
	indexSuffix  = ".json"
)
