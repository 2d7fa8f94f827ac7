package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"hecate/internal/chaos"
)

type chaosUpstreamCmd struct {
	Listen     string        `help:"Address of the API." default:"127.0.0.1:0"`
	Fault      []string      `help:"How it fails, see --list; each request meets the first that strikes." default:"none" placeholder:"NAME"`
	List       bool          `help:"Print every fault with a sentence, and end."`
	Delay      time.Duration `help:"Before the first token, under late." default:"15s"`
	Period     time.Duration `help:"Of flapping, half of it down." default:"10s"`
	Pace       time.Duration `help:"Between two tokens." default:"20ms"`
	RetryAfter time.Duration `help:"Said with 429, in whole seconds." default:"1s"`
}

// Help says how to change the fault.
func (*chaosUpstreamCmd) Help() string {
	return `It answers POST /v1/chat/completions, POST /v1/completions and GET /v1/models, for any model name.
The faults change while it runs:
  curl ADDRESS/fault -d '429-once cut'      and what it did so far: curl ADDRESS/fault`
}

// Run serves until it is told to stop.
func (u *chaosUpstreamCmd) Run(ctx context.Context, c console) error {
	if u.List {
		t := table(c.out)
		for _, f := range chaos.Faults() {
			fmt.Fprintf(t, "%s\t%s\n", f.Name, f.About)
		}
		return t.Flush()
	}
	upstream, err := chaos.New(u.Fault, chaos.Options{Delay: u.Delay, Period: u.Period, Pace: u.Pace, RetryAfter: u.RetryAfter})
	if err != nil {
		return &UsageError{err}
	}
	l, err := net.Listen("tcp", u.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", u.Listen, err)
	}
	fmt.Fprintf(c.out, "upstream http://%s/v1 fails by: %s\n", l.Addr(), strings.Join(u.Fault, ", "))
	return serveUntil(ctx, l, upstream)
}

// serveUntil serves until ctx ends, and ends requests with it.
func serveUntil(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	return nil
}
