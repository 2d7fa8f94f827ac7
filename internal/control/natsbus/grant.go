package natsbus

import (
	"time"

	"hecate/internal/control"
	"hecate/internal/control/identity"
)

// A Grant lists the subjects that an identity may publish and subscribe to.
type Grant struct {
	Publish   []string
	Subscribe []string
	// Replies: it may answer each request that it receives, once, and within
	// ReplyWithin.
	Replies bool
}

// ReplyWithin bounds how late an answer may come.
const ReplyWithin = 30 * time.Second

// inboxOf is where an identity receives answers: nobody else may listen there.
func inboxOf(role identity.Role, element string) string {
	return "_INBOX." + string(role) + "-" + element
}

// InboxPrefix is where an identity receives answers.
func InboxPrefix(id identity.ID) string { return inboxOf(id.Role, control.EscapeElement(id.Name)) }

// GrantFor lists literally what an identity may do. element is its escaped
// name, or the template that the server replaces by it. A gateway may do
// everything in the swarm's account. A node has its health, its commands, its
// inbox, and may read two buckets: through these it sees the plan and the
// catalogue, never keys, and can write nothing.
func GrantFor(role identity.Role, element string) Grant {
	if role == identity.RoleGateway {
		return Grant{Publish: []string{">"}, Subscribe: []string{">"}}
	}
	g := Grant{
		Publish:   []string{control.HealthOf(element)},
		Subscribe: []string{control.CommandOf(element), inboxOf(role, element) + ".>"},
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
