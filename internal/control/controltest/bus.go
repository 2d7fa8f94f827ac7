package controltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"hecate/internal/control"
)

// A Bus is a control.Bus in memory. The zero value is ready to use. Messages
// to one subscription arrive in order; one that is 1,024 messages behind
// loses the newest, as on a real bus.
type Bus struct {
	mu struct {
		sync.Mutex
		subs   map[*subscription]bool
		silent map[string]bool
	}
}

const busQueue = 1024

type subscription struct {
	pattern []string
	queue   chan control.Message
	stop    chan struct{}
	done    chan struct{}
}

// NewBus returns a bus without listeners.
func NewBus() *Bus { return &Bus{} }

// Silence makes the bus swallow everything published or asked on a subject,
// as a cable that was pulled does; false mends it.
func (b *Bus) Silence(subject string, silent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.silent == nil {
		b.mu.silent = map[string]bool{}
	}
	b.mu.silent[subject] = silent
}

// Publish implements control.Bus.
func (b *Bus) Publish(subject string, data []byte) error {
	b.send(control.Message{Subject: subject, Data: data})
	return nil
}

func (b *Bus) send(m control.Message) (listeners int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.silent[m.Subject] {
		return 1
	}
	for s := range b.mu.subs {
		if !matches(s.pattern, m.Subject) {
			continue
		}
		listeners++
		copied := m
		copied.Data = append([]byte(nil), m.Data...)
		select {
		case s.queue <- copied:
		default:
		}
	}
	return listeners
}

// Subscribe implements control.Bus.
func (b *Bus) Subscribe(subject string, fn func(control.Message)) (func(), error) {
	s := &subscription{
		pattern: strings.Split(subject, "."), queue: make(chan control.Message, busQueue),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	b.mu.Lock()
	if b.mu.subs == nil {
		b.mu.subs = map[*subscription]bool{}
	}
	b.mu.subs[s] = true
	b.mu.Unlock()
	go s.run(fn)
	return sync.OnceFunc(func() {
		b.mu.Lock()
		delete(b.mu.subs, s)
		b.mu.Unlock()
		close(s.stop)
		<-s.done
	}), nil
}

func (s *subscription) run(fn func(control.Message)) {
	defer close(s.done)
	for {
		select {
		case <-s.stop:
			return
		case m := <-s.queue:
			fn(m)
		}
	}
}

// Request implements control.Bus.
func (b *Bus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	answers := make(chan []byte, 1)
	respond := func(answer []byte) error {
		select {
		case answers <- append([]byte(nil), answer...):
			return nil
		default:
			return errors.New("answered already")
		}
	}
	if b.send(control.Message{Subject: subject, Data: data, Respond: respond}) == 0 {
		return nil, fmt.Errorf("%s: %w", subject, control.ErrNoResponder)
	}
	select {
	case answer := <-answers:
		return answer, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for an answer on %s: %w", subject, ctx.Err())
	}
}

func matches(pattern []string, subject string) bool {
	elements := strings.Split(subject, ".")
	if len(elements) != len(pattern) {
		return false
	}
	for i, p := range pattern {
		if p != "*" && p != elements[i] {
			return false
		}
	}
	return true
}
