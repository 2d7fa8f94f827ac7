package gateway

import (
	"context"

	"hecate/internal/gateway/answer"
	"hecate/pool"
)

// opener lets answers reach nodes through the pool.
type opener struct{ pool *pool.Pool }

func (o opener) Open(ctx context.Context, node string, opening []byte, rescue bool) (answer.Session, error) {
	s, err := o.pool.Open(ctx, node, pool.OpenOptions{Rescue: rescue, Payload: opening})
	if err != nil {
		return nil, err
	}
	return poolSession{s}, nil
}

type poolSession struct{ pool.Session }

// End lets the node free the state.
func (s poolSession) End(underway bool) {
	if underway {
		s.Close(pool.CodeCancelled)
		return
	}
	s.Close(pool.CodeNormal)
}

// Abandon leaves the state at the node for a reconnect.
func (s poolSession) Abandon() { s.Close(pool.CodeTimeout) }
