package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
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
		srv := &http.Server{Handler: &guard{next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			s := newStream(w)
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
