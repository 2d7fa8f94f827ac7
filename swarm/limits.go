package swarm

// Every bound of the package stands here, each with what it protects against.
const (
	// MaxLayer is the highest layer number that is accepted. Failover walks
	// lost layers one by one, so a range out of a hostile document must not be
	// able to ask for billions of steps.
	MaxLayer = 1<<16 - 1

	// MaxFragments bounds what one node may declare in one sample, for the
	// same reason: the router's work grows with it.
	MaxFragments = 4096
)
