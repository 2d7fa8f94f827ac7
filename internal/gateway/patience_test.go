package gateway

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// ending serves one handler behind the guard, without buffers, and tells after what
// time each of its requests ended, and how.
type ending struct {
	*pipes
	took chan time.Duration
	errs chan error
}

func serveEnding(h func(http.ResponseWriter, *http.Request) error) (*ending, *http.Server) {
	e := &ending{newPipes(), make(chan time.Duration, 1), make(chan error, 1)}
	srv := &http.Server{Handler: &guard{next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		err := h(w, r)
		e.took <- time.Since(began)
		e.errs <- err
	})}}
	go func() { _ = srv.Serve(e.pipes) }()
	return e, srv
}

// A body that does not come, or comes byte by byte for ever, is waited for within
// bounds; one on a slow line is taken.
func TestABodyThatDoesNotCome(t *testing.T) {
	const size = 3 * patientPiece
	for name, c := range map[string]struct {
		each time.Duration
		step int
		most time.Duration // 0: all of it is taken
	}{
		"nothing":      {time.Hour, 1, writePatience},
		"drop by drop": {writePatience / 2, 1, writePatience},
		"slowly":       {writePatience / 2, patientPiece, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, srv := serveEnding(func(w http.ResponseWriter, r *http.Request) error {
				b, err := readBody(w, r)
				if err == nil && len(b) != size {
					t.Errorf("%s: %d bytes", name, len(b))
				}
				if err == nil { // what bounded the body does not bound the answer
					time.Sleep(10 * writePatience)
					err = r.Context().Err()
				}
				return err
			})
			conn := e.dial()
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			sent := make(chan struct{})
			go func(conn net.Conn) {
				defer close(sent)
				_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 49152\r\n\r\n")
				for sent := 0; err == nil && sent < size; sent += c.step {
					time.Sleep(c.each)
					_, err = io.WriteString(conn, strings.Repeat("x", min(c.step, size-sent)))
				}
			}(conn)
			took, err := <-e.took, <-e.errs
			if (err == nil) != (c.most == 0) || c.most > 0 && took > c.most {
				t.Errorf("%s: %v after %s", name, err, took)
			}
			_ = conn.Close()
			_ = srv.Close()
			<-sent
		})
	}
}

// A client that takes nothing of an answer holds it for a bounded time only.
func TestAnAnswerThatIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, srv := serveEnding(func(w http.ResponseWriter, _ *http.Request) error {
			return writeJSON(w, strings.Repeat("x", 1<<20))
		})
		conn := e.dial()
		go func() { _, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") }()
		select {
		case took := <-e.took:
			if err := <-e.errs; err == nil || took > writePatience {
				t.Errorf("%v after %s", err, took)
			}
		case <-time.After(time.Hour):
			t.Error("it waits for ever")
		}
		_ = conn.Close()
		_ = srv.Close()
		synctest.Wait()
	})
}
