package natsbus

import (
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hecate/internal/control"
	"hecate/internal/control/identity"
)

// A Grant lists the subjects that an identity may publish and subscribe to.
type Grant struct {
	Publish   []string
	Subscribe []string
	// Replies: it may answer each request that it receives, once, and soon.
	Replies bool
}

// replyWithin bounds how late an answer may come.
const replyWithin = 30 * time.Second

// InboxPrefix is where an identity receives answers: nobody else may listen
// there.
func InboxPrefix(id identity.ID) string {
	return "_INBOX." + string(id.Role) + "-" + control.EscapeElement(id.Name)
}

// GrantFor lists literally what an identity may do. A gateway may do
// everything in the swarm's account. A node has its health, its commands, its
// inbox, and may read two buckets: through these it sees the plan and the
// catalogue, never keys, and can write nothing.
func GrantFor(id identity.ID) Grant {
	if id.Role == identity.RoleGateway {
		return Grant{Publish: []string{">"}, Subscribe: []string{">"}}
	}
	g := Grant{
		Publish:   []string{control.HealthSubject(id.Name)},
		Subscribe: []string{control.CommandSubject(id.Name), InboxPrefix(id) + ".>"},
		Replies:   true,
	}
	for _, b := range []control.Bucket{control.BucketPlan, control.BucketModels} {
		stream := streamOf(b)
		g.Publish = append(g.Publish,
			"$JS.API.STREAM.INFO."+stream,
			"$JS.API.CONSUMER.CREATE."+stream+".>",
			"$JS.API.CONSUMER.DELETE."+stream+".>",
			"$JS.API.DIRECT.GET."+stream+".>",
			"$JS.FC."+stream+".>", // flow control of its own consumers
		)
	}
	return g
}

// certificateAuth admits whoever the TLS layer admitted, with its grant.
type certificateAuth struct{}

// Check implements server.Authentication.
func (certificateAuth) Check(c server.ClientAuthentication) bool {
	state := c.GetTLSConnectionState()
	if state == nil {
		return false
	}
	id, err := identity.OfPeer(*state)
	if err != nil {
		return false
	}
	c.RegisterUser(&server.User{
		Username:           id.String(),
		Permissions:        GrantFor(id).permissions(),
		ConnectionDeadline: state.VerifiedChains[0][0].NotAfter,
	})
	return true
}

func (g Grant) permissions() *server.Permissions {
	p := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: g.Publish},
		Subscribe: &server.SubjectPermission{Allow: g.Subscribe},
	}
	if g.Replies {
		p.Response = &server.ResponsePermission{MaxMsgs: 1, Expires: replyWithin}
	}
	return p
}
