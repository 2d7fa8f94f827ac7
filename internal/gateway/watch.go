package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hecate/internal/event"
	"hecate/internal/gateway/openai"
)

// maxWatchers bounds the open streams of events and pictures: each costs a
// goroutine and a connection.
const maxWatchers = 256

// watchers counts open streams, and ends them with the server: they have no end
// of their own.
type watchers struct {
	open  atomic.Int64
	over  chan struct{}
	close func() // over, once
}

func newWatchers() *watchers {
	s := &watchers{over: make(chan struct{})}
	s.close = sync.OnceFunc(func() { close(s.over) })
	return s
}

func (s *watchers) enter() *openai.Error {
	if s.open.Add(1) > maxWatchers {
		s.open.Add(-1)
		return openai.Overloaded("too_many_watchers", fmt.Sprintf("%d pages and programs watch already.", maxWatchers), 10*time.Second)
	}
	return nil
}

func (s *watchers) leave() { s.open.Add(-1) }

// showLive serves GET /v1/swarm/live: the picture and its changes, and events.
func (g *Gateway) showLive(w http.ResponseWriter, r *http.Request) error {
	after, err := g.resume(r)
	if err != nil {
		return err
	}
	if fault := g.watching.enter(); fault != nil {
		return fault
	}
	defer g.watching.leave()
	sub := g.events.Subscribe(after)
	defer sub.Close()
	bell, stop := g.feed.Watch()
	defer stop()
	select {
	case g.watched <- struct{}{}:
	default: // a picture is being drawn
	}
	s := newWatch(w)
	history, _ := json.Marshal(g.pulse.History()) // numbers and nothing else
	if s.send("history", "", history) != nil {
		return nil
	}
	g.tell(r.Context(), s, sub, bell)
	return nil
}

// tell sends what happens, and the picture when the bell rings, until the watcher
// or the server is gone. Without a bell there is no picture.
func (g *Gateway) tell(ctx context.Context, s *watch, sub *event.Subscription, bell <-chan struct{}) {
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	var revision uint64
	var failed error
	for failed == nil {
		select {
		case <-ctx.Done():
			return
		case <-g.watching.over:
			return
		case <-alive.C:
			failed = s.comment()
		case <-sub.Bell():
			failed = s.events(g.events, sub)
		case <-bell:
			frame, now := g.feed.Since(revision)
			if frame != nil {
				revision, failed = now, s.send("frame", "", frame)
			}
		}
	}
}

// showEvents serves GET /v1/swarm/events: a list, or a stream for who accepts one.
func (g *Gateway) showEvents(w http.ResponseWriter, r *http.Request) error {
	after, err := g.resume(r)
	if err != nil {
		return err
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return g.streamEvents(w, r, after)
	}
	events, forgotten := g.events.After(after)
	if events == nil {
		events = []event.Event{}
	}
	if after == 0 {
		forgotten = 0 // who asks for everything does not miss the beginning
	}
	return writeJSON(w, map[string]any{"object": "list", "data": events, "last": g.events.ID(g.events.Last()), "forgotten": forgotten})
}

func (g *Gateway) streamEvents(w http.ResponseWriter, r *http.Request, after uint64) error {
	if fault := g.watching.enter(); fault != nil {
		return fault
	}
	defer g.watching.leave()
	sub := g.events.Subscribe(after)
	defer sub.Close()
	s := newWatch(w)
	if s.comment() == nil {
		g.tell(r.Context(), s, sub, nil)
	}
	return nil
}

// resume finds where a client left off: Last-Event-ID, or ?after=.
func (g *Gateway) resume(r *http.Request) (uint64, error) {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		id = r.URL.Query().Get("after")
	}
	if id == "" {
		return 0, nil
	}
	seq, ok := g.events.Resume(id)
	if !ok {
		if n, err := strconv.ParseUint(id, 10, 64); err == nil {
			return n, nil
		}
		return 0, openai.BadRequest("after", "invalid_value", "'after' is %q, want the id of an event, or its number.", id)
	}
	return seq, nil
}

// watch writes server-sent events that have names, for who looks on.
type watch struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
}

func newWatch(w http.ResponseWriter) *watch {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &watch{w: w, control: http.NewResponseController(w)}
}

// send writes one event. data holds no line breaks: it is JSON.
func (s *watch) send(name, id string, data []byte) error {
	s.buf = s.buf[:0]
	s.add(name, id, data)
	return s.flush()
}

func (s *watch) add(name, id string, data []byte) {
	if id != "" {
		s.buf = fmt.Appendf(s.buf, "id: %s\n", id)
	}
	s.buf = fmt.Appendf(s.buf, "event: %s\ndata: %s\n\n", name, data)
}

// events sends what is new, at once.
func (s *watch) events(stream *event.Stream, sub *event.Subscription) error {
	events, missed := sub.Take()
	s.buf = s.buf[:0]
	if missed > 0 {
		s.add("missed", "", strconv.AppendUint(nil, missed, 10))
	}
	for _, e := range events {
		b, err := json.Marshal(e)
		if err != nil {
			panic("BUG: an event that cannot be written: " + err.Error())
		}
		s.add("event", stream.ID(e.Sequence), b)
	}
	if len(s.buf) == 0 {
		return nil
	}
	return s.flush()
}

func (s *watch) comment() error {
	s.buf = append(s.buf[:0], ": still here\n\n"...)
	return s.flush()
}

func (s *watch) flush() error { return sendNow(context.Background(), s.w, s.control, s.buf) }
