package gateway

import (
	"context"
	"errors"
	"fmt"

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

// Reopen waits for the pool's verdict on the node.
func (o opener) Reopen(ctx context.Context, node string, opening []byte) (answer.Session, error) {
	s, err := o.pool.Open(ctx, node, pool.OpenOptions{Reconnect: true, Payload: opening})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", answer.ErrNoConnection, err)
	}
	return poolSession{s}, nil
}

// Suspect lets the pool find out.
func (o opener) Suspect(node string) { o.pool.Suspect(node) }

type poolSession struct{ pool.Session }

func (s poolSession) Send(ctx context.Context, b []byte) error {
	return silence(s.Session.Send(ctx, b))
}

func (s poolSession) Recv(ctx context.Context) ([]byte, error) {
	b, err := s.Session.Recv(ctx)
	return b, silence(err)
}

// silence tells a peer that answers no more from one that closed the connection.
func silence(err error) error {
	var c *pool.CloseError
	if errors.As(err, &c) && c.Silent {
		return fmt.Errorf("%w: %w", answer.ErrSilence, err)
	}
	return err
}

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
