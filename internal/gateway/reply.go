package gateway

import (
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
	tokens []stage.Token
	finish string
}

// reply generates what was wished and sends it, whole or as a stream.
func (g *Gateway) reply(w http.ResponseWriter, r *http.Request, wish wish, streamed bool, words wording) error {
	caller, fault := callerOf(r)
	if fault != nil {
		return fault
	}
	wish.caller, wish.caller.Request, wish.caller.Choices = caller, wish.id, len(wish.params)
	wish.chaos = g.chaos.take(wish.model.Record.ID)
	gen, err := g.begin(r.Context(), wish)
	if err != nil {
		return err
	}
	if streamed {
		err = g.replyStream(w, r, gen, words)
	} else {
		err = replyWhole(w, r, gen, words)
	}
	if err != nil {
		gen.close()
		return err
	}
	// The client has all it asked for and must not wait for the nodes to settle.
	gen.keep()
	g.settling.Go(gen.settle)
	return nil
}

func replyWhole(w http.ResponseWriter, r *http.Request, gen *generation, words wording) error {
	parts := make([]gathered, len(gen.choices))
	texts := make([]strings.Builder, len(gen.choices))
	err := waitFor(r.Context(), gen, func(p piece) error {
		texts[p.choice].WriteString(p.text)
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
	return json.NewEncoder(w).Encode(words.whole(gen, parts))
}

// replyStream sends pieces as they come. It returns an error only while nothing
// was sent; afterwards the stream itself carries it and is aborted.
func (g *Gateway) replyStream(w http.ResponseWriter, r *http.Request, gen *generation, words wording) error {
	s := newStream(w, gen.head)
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
				return g.breakStream(r, s, gen, p.err)
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
	s.done(gen.hecate().Rescues)
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
	if p.text != "" || len(p.tokens) > 0 {
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

// breakStream ends a stream whose answer is lost.
func (g *Gateway) breakStream(r *http.Request, s *stream, gen *generation, err error) error {
	if !s.started || gone(r.Context(), err) {
		return err
	}
	g.log.Error("stream broken", "because", err)
	gen.close() // fail does not return
	s.fail(faultOf(err))
	return nil
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
