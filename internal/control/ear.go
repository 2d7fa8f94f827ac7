package control

import (
	"sync"
	"time"
)

// An ear tells whether we would hear anything: it speaks to itself over the
// bus.
type ear struct {
	bus     Bus
	subject string
	spoke   time.Time // owned by the caller of deaf
	mu      sync.Mutex
	heard   time.Time // guarded by mu
}

const (
	echoEvery = 400 * time.Millisecond
	// deafAfter is three echoes, and well before anybody is condemned.
	deafAfter = 3 * echoEvery
)

func (e *ear) open() (stop func(), err error) {
	return e.bus.Subscribe(e.subject, func(Message) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard = time.Now()
	})
}

// deaf reports whether the echoes stopped coming, and speaks again when it is
// time. It is called by one goroutine, several times a second.
func (e *ear) deaf(now time.Time) bool {
	if now.Sub(e.spoke) >= echoEvery {
		e.spoke = now
		_ = e.bus.Publish(e.subject, nil) // what is not sent is not heard
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return now.Sub(e.heard) > deafAfter
}
