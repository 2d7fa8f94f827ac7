package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener without buffers: what a client does not read cannot be
// written.
type pipes struct {
	conns  chan net.Conn
	closed context.Context
	close  context.CancelFunc
}

func newPipes() *pipes {
	p := &pipes{conns: make(chan net.Conn)}
	p.closed, p.close = context.WithCancel(context.Background())
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed.Done():
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// A client that takes nothing keeps its answer for a bounded time only; others
// are not held up, and a slow one is served.
func TestAStuckClientIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		ended := make(chan time.Duration, 2)
		srv := &http.Server{Handler: &guard{next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s, unhook := newStream(w, r)
			defer unhook()
			s.head = func(http.Header) {}
			began := time.Now()
			var err error
			for i := 0; i < 100 && err == nil; i++ {
				err = s.event("token")
			}
			if err != nil {
				ended <- time.Since(began)
				return
			}
			s.done(0, "")
		})}}
		go func() { _ = srv.Serve(l) }()
		ask := func(c net.Conn) {
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Error(err)
			}
		}
		stuck := l.dial()
		ask(stuck)
		slow := l.dial()
		lines := bufio.NewReader(slow)
		for range 2 { // the second long after the first one's bound
			ask(slow)
			for {
				time.Sleep(200 * time.Millisecond)
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(line, "data: [DONE]") {
					break
				}
			}
			for line := ""; line != "\r\n"; { // trailer
				line, _ = lines.ReadString('\n')
			}
			for line := ""; line != "\r\n"; {
				line, _ = lines.ReadString('\n')
			}
			time.Sleep(2 * writePatience)
		}
		if d := <-ended; d != writePatience {
			t.Errorf("the stuck one was left after %s, want %s", d, writePatience)
		}
		_ = stuck.Close()
		_ = slow.Close()
		_ = srv.Close()
	})
}

// blocked is the connection of a client who reads nothing: a write ends with its
// deadline only.
type blocked struct {
	header   http.Header
	deadline chan time.Time
}

func (b *blocked) Header() http.Header { return b.header }
func (b *blocked) WriteHeader(int)     {}
func (b *blocked) SetWriteDeadline(at time.Time) error {
	b.deadline <- at
	return nil
}

func (b *blocked) Write([]byte) (int, error) {
	over := time.NewTimer(time.Hour)
	for {
		select {
		case at := <-b.deadline:
			over.Reset(time.Until(at))
		case <-over.C:
			return 0, os.ErrDeadlineExceeded
		}
	}
}

// A client who hangs up while his stream waits for him to read is left at once.
func TestAStuckClientWhoHangsUpIsLeftAtOnce(t *testing.T) {
	for _, later := range []time.Duration{0, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, hangUp := context.WithCancel(t.Context())
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil)
			s, unhook := newStream(&blocked{http.Header{}, make(chan time.Time, 8)}, r)
			defer unhook()
			s.head = func(http.Header) {}
			time.AfterFunc(later, hangUp)
			began := time.Now()
			if err := s.event("token"); !errors.Is(err, errDeaf) || time.Since(began) > later {
				t.Errorf("left after %s with %v", time.Since(began), err)
			}
			if err := s.event("another"); !errors.Is(err, errDeaf) || time.Since(began) > later {
				t.Errorf("left after %s with %v", time.Since(began), err)
			}
		})
	}
}

// A large answer may take long, as long as the client takes something.
func TestAWholeAnswerWaitsForASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		ended := make(chan error, 1)
		const size = 20 * patientPiece
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := patient{w, http.NewResponseController(w)}.Write(make([]byte, size))
			ended <- err
			if err != nil {
				panic(http.ErrAbortHandler)
			}
		}), ErrorLog: log.New(io.Discard, "", 0)}
		go func() { _ = srv.Serve(l) }()
		ask := func() net.Conn {
			c := l.dial()
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Error(err)
			}
			return c
		}
		slow := ask()
		for got := 0; got < size; {
			time.Sleep(writePatience / 3)
			n, err := io.ReadFull(slow, make([]byte, patientPiece))
			if got += n; err != nil {
				t.Fatal(err)
			}
		}
		go func() { _, _ = io.Copy(io.Discard, slow) }() // chunk headers are left
		if err := <-ended; err != nil {
			t.Error(err)
		}
		stuck := ask()
		began := time.Now()
		if err := <-ended; !errors.Is(err, errDeaf) || time.Since(began) != writePatience {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		for _, c := range []net.Conn{slow, stuck} {
			_ = c.Close()
		}
		_ = srv.Close()
	})
}
