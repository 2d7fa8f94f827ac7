//go:build !noengine && cgo

package engine

import (
	"context"
	"log"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
)

// The kernels' Go code logs to slog's default logger when the first back end
// opens: two lines at level info about the file and the processor. They say
// nothing to a user of ours. So for that one call the default logger is
// replaced by one that drops the kernels' records and passes on all others;
// then it is put back. Later calls log only at level debug, and those records
// [QuietHandler] drops for programs that run at that level.

var quietOnce atomic.Bool

// quietly runs f, the first time without the kernels' log lines. The caller
// holds computing.
func quietly(f func() error) error {
	if !quietOnce.CompareAndSwap(false, true) {
		return f()
	}
	before := slog.Default()
	next := before.Handler()
	if !before.Enabled(context.Background(), slog.LevelInfo) {
		return f()
	}
	out, flags, prefix := log.Writer(), log.Flags(), log.Prefix()
	if out == os.Stderr {
		// Possibly slog's built-in handler, which writes through package log,
		// which SetDefault redirects to the new logger: a circle.
		next = slog.NewTextHandler(os.Stderr, nil)
	}
	slog.SetDefault(slog.New(QuietHandler(next)))
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(out)
		log.SetFlags(flags)
		log.SetPrefix(prefix)
	}()
	return f()
}

// QuietHandler returns a handler that drops the records of the kernels' Go
// code and passes all others on.
func QuietHandler(next slog.Handler) slog.Handler { return quiet{next} }

type quiet struct{ slog.Handler }

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	frame, _ := runtime.CallersFrames([]uintptr{r.PC}).Next()
	if strings.HasPrefix(frame.Function, "github.com/ollama/ollama/") {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(as []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(as)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
