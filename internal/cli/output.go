package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"

	"golang.org/x/term"
)

// printJSON writes one indented document.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table aligns columns; the caller writes tab-separated lines and flushes.
func table(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 4, 2, ' ', 0) }

// isTerminal says whether a writer is a screen.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// logger is for people on a terminal and for machines otherwise.
func logger(w io.Writer, level slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

// sizeOf prints bytes the way people read them.
func sizeOf(n int64) string {
	const step = 1024
	switch {
	case n < step:
		return fmt.Sprintf("%d B", n)
	case n < step*step:
		return fmt.Sprintf("%.1f KiB", float64(n)/step)
	case n < step*step*step:
		return fmt.Sprintf("%.1f MiB", float64(n)/(step*step))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(step*step*step))
}

// maxInput bounds what a command reads from standard input.
const maxInput = 256 << 20

func readAll(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxInput))
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return b, nil
}
