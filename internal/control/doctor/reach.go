package doctor

import (
	"context"
	"fmt"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/identity"
)

// Reach tries every endpoint of every node's data plane, with a gateway's
// credentials: what a gateway can reach. A node that lives and cannot be reached
// connects by itself, which is a detour and no fault; lives may be nil.
func Reach(ctx context.Context, credentials *identity.Credentials, nodes []*control.NodeRecord, lives func(node string) bool) []Finding {
	var checks []func() []Finding
	for _, n := range nodes {
		if n.Desired == control.DesiredRemoved || !n.Started() {
			continue
		}
		if n.Reverse {
			checks = append(checks, func() []Finding {
				return []Finding{well("node", "%s connects by itself, nothing to reach", n.ID)}
			})
			continue
		}
		for _, endpoint := range n.Profile.Endpoints {
			checks = append(checks, func() []Finding { return reach(ctx, credentials, n.ID, endpoint, lives != nil && lives(n.ID)) })
		}
	}
	return together(checks)
}

func reach(ctx context.Context, credentials *identity.Credentials, node, endpoint string, lives bool) []Finding {
	const check = "node"
	began := time.Now()
	conn, f := dial(ctx, check, endpoint)
	if conn == nil {
		f.Detail = node + " at " + f.Detail
		if lives {
			f.Status, f.Do = Warn, "it lives, and connects to the gateway by itself; to spare the detour, let the gateway in there"
		}
		return []Finding{f}
	}
	defer conn.Close()
	_, err := handshake(ctx, conn, credentials.Client(identity.RoleNode, node))
	if silent(err) {
		return []Finding{{check, Fail, fmt.Sprintf("%s at %s takes connections and says nothing", node, endpoint), standsStill}}
	}
	if err != nil {
		return []Finding{{check, Fail, fmt.Sprintf("%s at %s: %v", node, endpoint, err), "another program or node has this address now; restart the node"}}
	}
	return []Finding{well(check, "%s answers at %s in %s", node, endpoint, time.Since(began).Round(10*time.Microsecond))}
}
