package gateway

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/control"
	"hecate/internal/event"
)

// Who only looks on does not hold up the end.
func TestWatchersEndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gateway{log: slog.New(slog.DiscardHandler), events: event.New(0), watching: newWatchers()}
		g.mux = g.look(g.showEvents)
		ctx, cancel := context.WithCancel(t.Context())
		l, served := newPipes(), make(chan error, 1)
		go func() { served <- g.Serve(ctx, l) }()
		c := l.dial()
		defer c.Close()
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
		go func() { _, _ = io.Copy(io.Discard, c) }()
		synctest.Wait()
		if n := g.watching.open.Load(); n != 1 {
			t.Fatalf("%d watch", n)
		}
		began := time.Now()
		cancel()
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took >= shutdownTime {
			t.Errorf("the end took %v", took)
		}
	})
}

// A model that was taken away and added again is news once more.
func TestTheHeraldForgets(t *testing.T) {
	h := newHerald(&Gateway{})
	h.gateway.catalog.put(&Model{Record: control.ModelRecord{ID: "here"}})
	for _, id := range []string{"here", "gone"} {
		h.models[id], h.nodes[id] = &modelSeen{}, &nodeSeen{}
	}
	h.forget(&control.View{Members: []control.Member{{ID: "here"}}})
	if h.models["here"] == nil || h.nodes["here"] == nil || len(h.models)+len(h.nodes) != 2 {
		t.Errorf("%v, %v", h.models, h.nodes)
	}
}
