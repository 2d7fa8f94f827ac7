package pool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hecate/pool/wire"
)

func TestEveryReasonHasAName(t *testing.T) {
	for _, names := range [][]string{
		dropNames[:], endNames[:], lossNames[:], outcomeNames[:], connectNames[:], forceNames[:],
		replacementOutcomeNames[:], openFailureNames[:], contourNames[:], replacementNames[:],
	} {
		seen := map[string]bool{}
		for i, name := range names {
			if name == "" || seen[name] {
				t.Errorf("reason %d of %v has no name of its own", i, names)
			}
			seen[name] = true
		}
	}
}

func TestSnapshotNamesEveryCounter(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		snap := w.pool.Snapshot()
		for what, counters := range map[string]struct {
			have map[string]uint64
			want []string
		}{
			"drops": {snap.Drops, dropNames[:]}, "sessions": {snap.SessionsClosed, endNames[:]},
			"losses": {snap.WriterLosses, lossNames[:]}, "commits": {snap.Commits, outcomeNames[1:]},
			"connects": {snap.Connects, connectNames[:]}, "forced": {snap.ForceCloses, forceNames[:]},
			"replacements": {snap.Replacements, replacementOutcomeNames[:]}, "opens": {snap.OpenFailures, openFailureNames[:]},
		} {
			for _, name := range counters.want {
				if _, ok := counters.have[name]; !ok {
					t.Errorf("%s: no counter %q", what, name)
				}
			}
		}
		text, err := json.Marshal(snap)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{`"generation":{"active":1`, `"map_current":true`, `"contours":{"active":3,"draining":0,"warm":0}`, `"floor_target":3`, `"round_trip_ns"`} {
			if !strings.Contains(string(text), key) {
				t.Errorf("no %s in %s", key, text)
			}
		}
	})
}

// TestCloseReasons makes sessions end in every way that a peer can cause, and
// looks for each at the gateway's counters and at the code the owner sees.
func TestCloseReasons(t *testing.T) {
	for _, tt := range []struct {
		reason string
		code   CloseCode
		peer   func(p *rawPeer, id uint64)
	}{
		{"remote", CodeNormal, func(p *rawPeer, id uint64) { _ = p.w.AppendReason(wire.TypeClose, id, wire.Reason{}) }},
		{"remote", CodeApplication + 7, func(p *rawPeer, id uint64) {
			_ = p.w.AppendReason(wire.TypeClose, id, wire.Reason{Code: CodeApplication + 7})
		}},
		{"remote_cancelled", CodeCancelled, func(p *rawPeer, id uint64) {
			_ = p.w.AppendReason(wire.TypeCancel, id, wire.Reason{Code: CodeCancelled})
		}},
		{"refused", CodeRefused, func(p *rawPeer, id uint64) {
			_ = p.w.AppendReason(wire.TypeClose, id, wire.Reason{Code: CodeRefused})
		}},
		{"unknown_session", CodeUnknown, func(p *rawPeer, id uint64) {
			_ = p.w.AppendReason(wire.TypeClose, id, wire.Reason{Code: CodeUnknown})
		}},
		{"shutdown", CodeDraining, func(p *rawPeer, id uint64) {
			_ = p.w.AppendReason(wire.TypeClose, id, wire.Reason{Code: CodeDraining})
		}},
		{"internal", CodeInternal, func(p *rawPeer, id uint64) {
			_ = p.w.AppendReason(wire.TypeClose, id, wire.Reason{Code: CodeInternal})
		}},
		{"overloaded", CodeOverloaded, func(p *rawPeer, id uint64) {
			_ = p.w.AppendReason(wire.TypeClose, id, wire.Reason{Code: CodeOverloaded})
		}},
		{"overloaded", CodeOverloaded, func(p *rawPeer, id uint64) {
			for range 769 {
				_ = p.w.Append(wire.TypeData, 0, id, nil)
			}
		}},
		{"protocol", CodeProtocol, func(p *rawPeer, id uint64) { _ = p.w.Append(wire.TypeData, wire.FlagMore, id, nil) }},
		{"protocol", CodeProtocol, func(p *rawPeer, id uint64) {
			_ = p.w.AppendReason(wire.TypeClose, id, wire.Reason{Code: CodeProtocol})
		}},
		{"writer_lost", CodeLost, func(p *rawPeer, id uint64) { _ = p.conn.Close() }},
	} {
		t.Run(fmt.Sprintf("%s by %v", tt.reason, tt.code), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				w.acceptRaw("n1", func(p *rawPeer) {
					_ = p.pump(func(f wire.Frame) bool {
						if f.Type == wire.TypeOpen {
							tt.peer(p, f.ConnID)
							p.flush()
						}
						return true
					})
				})
				w.apply("n1")
				s := w.open("n1", OpenOptions{})
				<-s.Done()
				wantClose(t, s.Err(), tt.code)
				if n := w.pool.Snapshot().SessionsClosed[tt.reason]; n != 1 {
					t.Errorf("%s counted %d times: %v", tt.reason, n, w.pool.Snapshot().SessionsClosed)
				}
			})
		})
	}
}

func TestOwnCloseReasons(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		for code, reason := range map[CloseCode]string{CodeNormal: "local", CodeCancelled: "cancelled", CodeInternal: "internal", CodeApplication: "local"} {
			before := w.pool.Snapshot().SessionsClosed[reason]
			s := w.open("n1", OpenOptions{})
			s.Close(code)
			s.Close(CodeTimeout) // only the first counts
			wantClose(t, s.Err(), code)
			if n := w.pool.Snapshot().SessionsClosed[reason]; n != before+1 {
				t.Errorf("%v: %s counted %d times, before %d", code, reason, n, before)
			}
			if err := s.Send(context.Background(), nil); err == nil {
				t.Error("sent on a closed session")
			}
			if _, err := s.Recv(context.Background()); err == nil {
				t.Error("received on a closed session")
			}
		}
	})
}

func TestDropReasonsOfALink(t *testing.T) {
	o := testOutbox(nil)
	o.pong(1)
	o.pong(2)
	for id := range uint64(maxReplies + 3) {
		o.answer(id+1, CodeUnknown)
	}
	if n := o.counts.drops[dropPong].Load(); n != 1 {
		t.Errorf("pong_overtaken: %d", n)
	}
	if n := o.counts.drops[dropReply].Load(); n != 3 {
		t.Errorf("reply_overflow: %d", n)
	}
	// The codec checks lengths, so a malformed payload cannot come off the wire;
	// the dispatcher is asked directly.
	p, g := bareRegistry()
	w := seatOnly(p, g)
	w.link.owner = w
	for _, typ := range []wire.Type{wire.TypeAck, wire.TypeOpen, wire.TypeClose, wire.TypeCancel, wire.TypePing, wire.TypePong, wire.TypeGoAway, wire.TypeWant} {
		before := p.counts.drops[dropPayload].Load()
		f := wire.Frame{Header: wire.Header{Type: typ, ConnID: 1}, Payload: []byte{1}}
		dispatchForTest(w.link, &f)
		if p.counts.drops[dropPayload].Load() != before+1 {
			t.Errorf("%v with a malformed payload is not counted", typ)
		}
	}
	f := wire.Frame{Header: wire.Header{Type: wire.TypeOpen, ConnID: 1}, Payload: make([]byte, 8)}
	dispatchForTest(w.link, &f)
	if p.counts.drops[dropRefused].Load() != 1 {
		t.Error("an OPEN for a gateway is not counted as refused")
	}
}

func TestLossReasons(t *testing.T) {
	for _, tt := range []struct {
		reason string
		after  time.Duration
		do     func(p *rawPeer)
	}{
		{"peer_closed", 100 * time.Millisecond, func(p *rawPeer) { _ = p.conn.Close() }},
		{"idle_close", 10 * time.Second, func(p *rawPeer) { _ = p.conn.Close() }},
		{"protocol", time.Second, func(p *rawPeer) { _, _ = p.conn.Write(make([]byte, 64)) }},
		{"reset", time.Second, func(p *rawPeer) { p.conn.(interface{ Reset() }).Reset() }},
	} {
		inWorld(t, func(s *Settings) { s.FloorBase, s.ShadowWriters = 1, 0 }, func(w *world) {
			first := true
			w.acceptRaw("n1", func(p *rawPeer) {
				if first {
					first = false
					time.AfterFunc(tt.after, func() { tt.do(p) })
				}
				_ = p.pump(func(wire.Frame) bool { return true })
			})
			w.apply("n1")
			settle(tt.after + 5*time.Second)
			losses := w.pool.Snapshot().WriterLosses
			if losses[tt.reason] != 1 {
				t.Errorf("%s: %v", tt.reason, losses)
			}
		})
	}
	inWorld(t, nil, func(w *world) { // a pool that closes under a peer that does not read
		w.start("n1", hold, nil)
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		w.net.Silence("gateway", "n1", true)
		_ = s.Send(context.Background(), make([]byte, 3<<20))
		synctest.Wait()
		_ = w.pool.Close(context.Background())
		if n := w.pool.Snapshot().WriterLosses["shutdown"]; n == 0 {
			t.Errorf("shutdown: %v", w.pool.Snapshot().WriterLosses)
		}
	})
}

func TestEventsArePlain(t *testing.T) {
	e := Event{Kind: EventWriterLost, Group: "n1", Family: IP4, Endpoint: "n1:1", Writer: 3, Reason: "reset", Took: time.Second}
	if got, want := e.String(), `writer_lost group=n1 family=ip4 endpoint=n1:1 writer=3 took=1s reason="reset"`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReadinessPerFamily(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		g := Group{IP4: {{Addr: "n1:1"}}, IP6: {{Addr: "n1-six:1"}}} // nobody listens on the second
		w.applyMap(Map{Groups: map[string]Group{"n1": g}})
		if r := w.pool.Ready("n1"); r.Ready || !r.Known {
			t.Errorf("at once: %+v", r)
		}
		settle(5 * time.Second)
		r := w.pool.Ready("n1")
		if !r.Ready || len(r.Families) != 2 || !r.Families[0].Ready || r.Families[1].Ready || len(r.Missing) != 1 {
			t.Errorf("%+v", r)
		}
		if gen := w.pool.Snapshot().Generation; gen.Active != 1 {
			t.Errorf("a family that never worked holds up the swap: %+v", gen)
		}
		w.net.Cut("gateway", "n1")
		w.net.Refuse("n1", true)
		synctest.Wait()
		if w.pool.Ready("n1").Ready {
			t.Error("readiness is a latch")
		}
		if r := w.pool.Ready("nobody"); r.Known || r.Ready || len(r.Missing) == 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestMapsAreChecked(t *testing.T) {
	m := Map{Groups: map[string]Group{
		"":   GroupOf("a:1"),
		"g1": {"ip5": {{Addr: "a:1"}}},
		"g2": {IP4: {{Addr: ""}, {Addr: "a:1"}, {Addr: "a:1"}, {Addr: "b:1", Kind: "carrier pigeon"}}},
		"g3": {IP4: make([]Endpoint, MaxEndpoints+1)},
	}}
	err := m.Validate()
	for _, want := range []string{`group name ""`, `"ip5"`, "listed twice", "carrier pigeon", "65 endpoints", `address ""`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	a := Map{Groups: map[string]Group{"x": GroupOf("10.0.0.1:1", "[fe80::1]:1"), "y": GroupOf("h:1")}}
	if g := a.Groups["x"]; len(g[IP4]) != 1 || len(g[IP6]) != 1 {
		t.Errorf("families: %v", g)
	}
	b := a.clone()
	b.Revision = 9
	if a.contentHash() != b.contentHash() || b.Hash == "" {
		t.Error("the hash depends on the revision")
	}
	b.Groups["y"][IP4][0].Addr = "h:2"
	if a.contentHash() == b.contentHash() || a.Groups["y"][IP4][0].Addr != "h:1" {
		t.Error("the copy is not one, or the hash does not see it")
	}
}

// TestSwapUnderLoad: while sessions work on every writer, the whole pool moves
// to a new generation; on covered groups none is lost within the drain time.
func TestSwapUnderLoad(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for _, n := range []string{"n1", "n2", "n3"} {
			w.start(n, echo, nil)
		}
		w.net.SetLinks("gateway", "", longFatLite)
		w.apply("n1", "n2")
		settle(2 * time.Second)
		ctx, cancel := context.WithCancel(context.Background())
		results := make(chan error, 60)
		for i := range 60 {
			s := w.open([]string{"n1", "n2"}[i%2], OpenOptions{})
			go func() {
				for ctx.Err() == nil {
					if err := s.Send(context.Background(), make([]byte, 5000)); err != nil {
						results <- err
						return
					}
					if _, err := s.Recv(context.Background()); err != nil {
						results <- err
						return
					}
				}
				s.Close(CodeNormal)
				results <- nil
			}()
		}
		for i := range 5 {
			w.apply("n1", "n2", []string{"n3", "n1"}[i%2])
			settle(5 * time.Second)
		}
		cancel()
		for range 60 {
			if err := <-results; err != nil {
				t.Errorf("a session was lost: %v", err)
			}
		}
		if g := w.pool.Snapshot().Generation; g.Active != 6 {
			t.Errorf("%+v: want six generations", g)
		}
	})
}

func dispatchForTest(l *link, f *wire.Frame) { l.dispatch(f, new(*buffer)) }
