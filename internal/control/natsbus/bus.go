package natsbus

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"hecate/internal/control"
)

// subscriptionQueue is how far a reader may lag: ten seconds of health of
// 1,000 nodes. What does not fit is dropped, and logged by the connection.
const subscriptionQueue = 10_000

// Publish implements control.Bus.
func (c *Conn) Publish(subject string, data []byte) error {
	if err := c.nc.Publish(subject, data); err != nil {
		return fmt.Errorf("publishing on %s: %w", subject, err)
	}
	return nil
}

// Subscribe implements control.Bus.
func (c *Conn) Subscribe(subject string, fn func(control.Message)) (func(), error) {
	queue := make(chan *nats.Msg, subscriptionQueue)
	sub, err := c.nc.ChanSubscribe(subject, queue)
	if err != nil {
		return nil, fmt.Errorf("subscribing to %s: %w", subject, err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case m := <-queue:
				fn(messageOf(m))
			}
		}
	}()
	return sync.OnceFunc(func() {
		if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			c.log.Debug("unsubscribing", "subject", subject, "error", err)
		}
		close(stop)
		<-done
	}), nil
}

func messageOf(m *nats.Msg) control.Message {
	msg := control.Message{Subject: m.Subject, Data: m.Data}
	if m.Reply != "" {
		msg.Respond = m.Respond
	}
	return msg
}

// Request implements control.Bus.
func (c *Conn) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	m, err := c.nc.RequestWithContext(ctx, subject, data)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, fmt.Errorf("%s: %w", subject, control.ErrNoResponder)
	}
	if err != nil {
		return nil, fmt.Errorf("asking on %s: %w", subject, err)
	}
	return m.Data, nil
}
