package natsbus

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// A logger gives the server's warnings and errors to slog. Its notices are
// about itself and say nothing to the owner of a swarm.
type logger struct {
	log   *slog.Logger
	fault *firstFault
}

// firstFault remembers why a server did not start: it only logs that.
type firstFault struct {
	mu struct {
		sync.Mutex
		err error
	}
}

func (f *firstFault) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.err == nil {
		f.mu.err = err
	}
}

func (f *firstFault) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.err
}

func (l *logger) Noticef(format string, v ...any) {
	l.log.Debug("nats: " + fmt.Sprintf(format, v...))
}

func (l *logger) Warnf(format string, v ...any) {
	l.log.Warn("nats: " + fmt.Sprintf(format, v...))
}

func (l *logger) Errorf(format string, v ...any) {
	l.log.Warn("nats: " + fmt.Sprintf(format, v...))
}

// Fatalf is a server that cannot start; it must not end the program.
func (l *logger) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.fault.set(errors.New(text))
	l.log.Error("nats: " + text)
}

func (l *logger) Debugf(string, ...any) {}
func (l *logger) Tracef(string, ...any) {}
