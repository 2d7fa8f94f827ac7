package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"hecate/internal/gateway/answer"
)

// tale is the story of one request, told in one line of the log when it is over.
type tale struct {
	began   time.Time
	request string // X-Request-Id
	path    string
	wish    *wish
	gen     *generation // the last one tried; nil: none began
	outcome string
	err     error
}

func newTale(w http.ResponseWriter, r *http.Request, wish *wish) *tale {
	return &tale{began: time.Now(), request: w.Header().Get("X-Request-Id"), path: r.URL.Path, wish: wish, outcome: "aborted"}
}

func (t *tale) follow(gen *generation) { t.gen = gen }

// end notes how it went.
func (t *tale) end(r *http.Request, err error) {
	t.err = err
	switch {
	case err == nil:
		t.outcome = "finished"
	case r.Context().Err() != nil:
		t.outcome = "client left"
	case t.gen == nil:
		t.outcome = "refused"
	default:
		t.outcome = "lost"
	}
}

// tokens are what the key is charged: the prompt once, and all that was generated.
// The choices are done by now, or the generation is closed.
func (t *tale) tokens() int {
	if t.gen == nil {
		return 0
	}
	n := len(t.wish.prompt)
	for _, c := range t.gen.choices {
		n += c.answer.Load().Generated()
	}
	return n
}

// tell writes the line. The choices are done by now, or the generation is closed.
func (t *tale) tell(log *slog.Logger) {
	if !log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	out := []any{"request", t.request, "answer", t.wish.id, "path", t.path, "outcome", t.outcome, "model", t.wish.model.Record.ID}
	if key := t.wish.caller.Key; key != "" {
		out = append(out, "key", key[:min(len(key), keyDigits)])
	}
	out = append(out, "prompt_tokens", len(t.wish.prompt), "took", rounded(time.Since(t.began)))
	if t.gen != nil {
		out = t.gen.tell(out)
	}
	if t.err != nil {
		out = append(out, "because", t.err)
	}
	log.Info("request", out...)
}

// keyDigits of a key's hash are what lists of keys call it by.
const keyDigits = 12

// tell adds what befell the choices.
func (gen *generation) tell(out []any) []any {
	if gen.asked != "" {
		out = append(out, "answered_by", gen.model.Record.ID)
	}
	var rescues []string
	tokens := 0
	for _, c := range gen.choices {
		a := c.answer.Load()
		tokens += a.Generated()
		for _, e := range a.Rescued() {
			rescues = append(rescues, rescueInWords(e))
		}
	}
	if len(gen.choices) > 0 {
		first := gen.choices[0].answer.Load()
		out = append(out, "route", routeHeader(first.Route()), "queue", rounded(first.Waited()), "first_token", rounded(gen.choices[0].first))
	}
	if len(rescues) > 0 {
		out = append(out, "rescues", strings.Join(rescues, "; "))
	}
	return append(out, "tokens", tokens)
}

func rescueInWords(e answer.Event) string {
	return fmt.Sprintf("%s, %s failed at %d, %d replayed, gap %s", e.Rescue, e.Node, e.Position, e.Replay, rounded(e.Gap))
}

func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
