package plane

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"hecate/internal/control"
	"hecate/internal/control/identity"
)

// weightsPath is what GatewayConfig.Weights answers.
const weightsPath = "/v1/weights/"

// Peer names the node or gateway of this swarm that sent a request, or refuses
// it: the endpoint also serves machines that have no certificate yet.
func (g *Gateway) Peer(r *http.Request) (string, error) {
	if r.TLS == nil {
		return "", errors.New("only over TLS")
	}
	id, err := identity.OfPeer(*r.TLS)
	if err != nil {
		return "", err
	}
	switch {
	case id.Swarm == g.Swarm() && id.Role == identity.RoleNode:
		key, err := identity.KeyOfPeer(*r.TLS)
		if err != nil {
			return "", err
		}
		return id.Name, g.Admit(id, key)
	case id.Swarm == g.Swarm() && id.Role == identity.RoleGateway:
		return id.Name, nil
	}
	return "", fmt.Errorf("%w: %s", identity.ErrWrongPeer, id)
}

// WeightsAddresses are where other nodes can fetch from a living member, host:port;
// none from one that cannot be dialled.
func WeightsAddresses(m *control.Member) []string {
	if !m.Status.Living() || m.Health == nil || m.Health.WeightsPort == 0 || m.Record == nil || m.Record.Reverse {
		return nil
	}
	var out []string
	for _, e := range m.Record.Profile.Endpoints {
		if host, _, err := net.SplitHostPort(e); err == nil {
			out = append(out, net.JoinHostPort(host, fmt.Sprint(m.Health.WeightsPort)))
		}
	}
	return out
}
