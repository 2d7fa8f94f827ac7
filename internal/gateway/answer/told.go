package answer

import "time"

// Waited is how long the answer waited for its first route: in the queue, when
// there was one.
func (a *Answer) Waited() time.Duration { return a.waited }

// Rescued lists the failures that were survived so far, in order.
func (a *Answer) Rescued() []Event { return a.facts.Load().rescued }
