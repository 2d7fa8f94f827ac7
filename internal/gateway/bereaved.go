package gateway

import (
	"hecate/internal/control"
	"hecate/pool"
)

// reverseAddr stands for the address of a node that connects to us.
const reverseAddr = "reverse"

// Bereaved returns a listener for pool.Config.Observe that tells membership of
// nodes that the data plane has lost, though nobody was talking to them. A node
// that we can dial was dialled before the pool says so; one that we cannot dial
// is asked for on the bus.
func Bereaved(m *control.Membership) func(pool.Event) {
	return func(e pool.Event) {
		switch e.Kind {
		case pool.EventGroupRefused:
			m.ReportRefused(e.Group)
		case pool.EventGroupSilent:
			m.ReportReset(e.Group)
		case pool.EventGroupDown:
			if e.Endpoint == reverseAddr {
				m.Inquire(e.Group)
			}
		}
	}
}
