package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"hecate/internal/gateway/openai"
	"hecate/internal/stage"
)

// wording shapes a generation for one endpoint. Methods that give nil add nothing.
type wording interface {
	whole(gen *generation, parts []gathered) any
	first(gen *generation, choice int) any
	piece(gen *generation, p piece) any
	finish(gen *generation, p piece, last bool) any
	usage(gen *generation) any
}

// gathered is one whole choice.
type gathered struct {
	text   string
	calls  []openai.ToolCall
	tokens []stage.Token
	finish string
}

// reply generates what was wished and sends it, whole or as a stream. When the
// model cannot be served, a declared stand-in is asked.
func (g *Gateway) reply(w http.ResponseWriter, r *http.Request, wish wish, body *openai.Common, words wording) error {
	caller, fault := callerOf(r)
	if fault != nil {
		return fault
	}
	willing, fault := fallsBack(r, body)
	if fault != nil {
		return fault
	}
	wish.caller, wish.caller.Request, wish.caller.Choices = caller, wish.id, len(wish.params)
	wish.chaos = g.chaos.take(wish.model.Record.ID)
	wish.standIn = willing && wish.transferable() && g.hasStandIn(wish.model)
	d := &delivery{gateway: g, w: w, r: r, words: words, tale: newTale(w, r, &wish)}
	if body.Stream {
		var unhook func() bool
		d.stream, unhook = newStream(w, r)
		defer unhook()
	}
	defer func() { keyOf(r.Context()).spend(d.tale.tokens()) }()
	defer d.tale.tell(g.log) // also when a broken stream unwinds from here
	err := d.deliver(wish)
	if err != nil && wish.standIn && unserved(err) && !d.begun {
		err = d.standIn(wish, err)
	}
	d.tale.end(r, err)
	if err != nil && d.started() {
		g.breakStream(r, d.stream, err)
	}
	return err
}

// delivery is the way of one request's answer to its client.
type delivery struct {
	gateway *Gateway
	w       http.ResponseWriter
	r       *http.Request
	words   wording
	stream  *stream // nil: the answer is sent as a whole
	tale    *tale
	begun   bool // a token was computed: no other model may go on
}

// started says that something was written, if only a sign of life.
func (d *delivery) started() bool { return d.stream != nil && d.stream.started }

// deliver fulfils one wish. After an error nothing runs any more.
func (d *delivery) deliver(wish wish) error {
	gen, err := d.gateway.begin(d.r.Context(), wish)
	if err != nil {
		return err
	}
	d.tale.follow(gen)
	if d.stream != nil {
		err = replyStream(d.r, d.stream, gen, d.words)
	} else {
		err = replyWhole(d.w, d.r, gen, d.words)
	}
	if err != nil {
		gen.close()
		d.begun = gen.begun()
		return err
	}
	// The client has all it asked for and must not wait for the nodes to settle.
	gen.keep()
	d.gateway.settling.Go(gen.settle)
	return nil
}

// standIn asks the declared stand-ins of a model, one after the other. When none
// can answer, the model's own error is what the client is told.
func (d *delivery) standIn(asked wish, because error) error {
	for _, other := range d.gateway.standIns(d.r.Context(), asked) {
		d.gateway.degraded(other, because)
		err := d.deliver(other)
		if err == nil || d.begun || d.r.Context().Err() != nil {
			return err
		}
	}
	return because
}

func replyWhole(w http.ResponseWriter, r *http.Request, gen *generation, words wording) error {
	parts := make([]gathered, len(gen.choices))
	texts := make([]strings.Builder, len(gen.choices))
	err := waitFor(r.Context(), gen, func(p piece) error {
		texts[p.choice].WriteString(p.text)
		parts[p.choice].calls = gather(parts[p.choice].calls, p.calls)
		parts[p.choice].tokens = append(parts[p.choice].tokens, p.tokens...)
		parts[p.choice].finish = p.finish
		return nil
	})
	if err != nil {
		return err
	}
	for i := range parts {
		parts[i].text = texts[i].String()
	}
	gen.head(w.Header())
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(patient{w, http.NewResponseController(w)}).Encode(words.whole(gen, parts))
}

// waitFor takes pieces until all choices are finished.
func waitFor(ctx context.Context, gen *generation, each func(piece) error) error {
	for open := len(gen.choices); open > 0; {
		select {
		case p := <-gen.pieces:
			if p.err != nil {
				return p.err
			}
			if err := each(p); err != nil {
				return err
			}
			if p.finish != "" {
				open--
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// replyStream sends pieces as they come.
func replyStream(r *http.Request, s *stream, gen *generation, words wording) error {
	s.head = gen.head
	spoke := make([]bool, len(gen.choices))
	alive := time.NewTimer(headBound)
	defer alive.Stop()
	for open := len(gen.choices); open > 0; {
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-alive.C:
			if err := s.comment(); err != nil {
				return err
			}
			alive.Reset(keepAlive)
		case p := <-gen.pieces:
			if p.err != nil {
				return p.err
			}
			if p.finish != "" {
				open--
			}
			if err := sendPiece(s, gen, words, p, &spoke[p.choice], open == 0); err != nil {
				return err
			}
			alive.Reset(keepAlive)
		}
	}
	if u := words.usage(gen); u != nil {
		if err := s.event(u); err != nil {
			return err
		}
	}
	s.done(gen.hecate().Rescues, gen.asked)
	return nil
}

// sendPiece sends what one piece adds: the role before the first text, the text,
// and the reason for the end.
func sendPiece(s *stream, gen *generation, words wording, p piece, spoke *bool, last bool) error {
	var events []any
	if !*spoke {
		*spoke = true
		events = append(events, words.first(gen, p.choice))
	}
	if p.text != "" || len(p.calls) > 0 || len(p.tokens) > 0 {
		events = append(events, words.piece(gen, p))
	}
	if p.finish != "" {
		events = append(events, words.finish(gen, p, last))
	}
	for _, e := range events {
		if e == nil {
			continue
		}
		if err := s.event(e); err != nil {
			return err
		}
	}
	return nil
}

// breakStream ends a stream whose answer is not whole. It never returns, since the
// stream would end cleanly then: a client that counts as gone may have closed its own
// half of the connection only, and still read.
func (g *Gateway) breakStream(r *http.Request, s *stream, err error) {
	if gone(r.Context(), err) || errors.Is(err, errDeaf) {
		g.counts.left.Add(1)
		panic(http.ErrAbortHandler)
	}
	g.log.Error("stream broken", "because", err)
	s.fail(faultOf(err))
}

// readBody reads a request's body within the limit.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, openai.MaxBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, openai.TooLarge(large.Limit)
	}
	if err != nil {
		return nil, openai.BadRequest("", "unreadable_body", "The body could not be read: %s.", err)
	}
	return b, nil
}
