package gateway

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"hecate/internal/gateway/answer"
)

// pausing is a troupe whose nodes compute two tokens, and then for ever.
type pausing struct{ *troupe }

func (p pausing) Open(ctx context.Context, node string, opening []byte, rescue bool) (answer.Session, error) {
	s, err := p.troupe.Open(ctx, node, opening, rescue)
	return &paused{Session: s}, err
}

type paused struct {
	answer.Session
	got int
}

func (p *paused) Recv(ctx context.Context) ([]byte, error) {
	if p.got++; p.got > 3 { // the yes, and two tokens
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return p.Session.Recv(ctx)
}

// A client that closes its half of the connection counts as gone. It still reads, so
// its stream must not end like a whole one.
func TestAHalfClosedStreamDoesNotEndCleanly(t *testing.T) {
	for range 20 {
		g := standInGateway(&troupe{})
		g.runner.Opener = pausing{&troupe{}}
		srv := httptest.NewServer(g.routes())
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		body := `{"model":"big","stream":true,"messages":[{"role":"user","content":"hi"}]}`
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", chatPath, len(body), body)
		var got strings.Builder
		b := make([]byte, 4096)
		for !strings.Contains(got.String(), `"content":"b"`) {
			n, err := c.Read(b)
			if err != nil {
				t.Fatal(err, got.String())
			}
			got.Write(b[:n])
		}
		_ = c.(*net.TCPConn).CloseWrite()
		rest, _ := io.ReadAll(c)
		if strings.Contains(string(rest), "0\r\n") {
			t.Fatalf("the stream ended like a whole one: %q", rest)
		}
		_ = c.Close()
		srv.Close()
	}
}
