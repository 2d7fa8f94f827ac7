package top

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the expected screens anew")

const frame = `{"rev":7,"full":true,"parts":{
"swarm":{"state":"degraded","why":["1 of 2 copies of hecate-demo lives"],"generation":4},
"answers":{"running":1},
"pool":{"generation":3},
"pulse":{"tokens_per_second":120,"first_token_ms":31,"gap_ms":12.4,"running":1,"queued":0},
"flows":[{"model":"hecate-demo","stages":[{"node":"desk","first":0,"last":7},{"node":"mini","first":8,"last":11}],"count":1}],
"node/desk":{"id":"desk","alive":true,"status":"alive","load":0.52,"memory_used":2000000,"memory_budget":2500000,"round_trip_ms":0.31,"tokens_per_second":121,"if_it_dies":{"hecate-demo":"splice"}},
"node/laptop":{"id":"laptop","alive":false,"status":"dead","memory_budget":2500000,"loading":[{"model":"hecate-demo","layers":[0,7],"phase":"fetching","done":1000000,"total":2000000}]},
"node/mini":{"id":"mini","alive":true,"status":"alive","desired":"paused","load":0.1,"memory_used":1000000,"memory_budget":2500000,"round_trip_ms":1.5,"if_it_dies":{"hecate-demo":"down"}},
"model/hecate-demo":{"id":"hecate-demo","ready":true,"layers":12,"bytes":2700000,"pipelines":[
 {"pipeline_id":0,"live":true,"stages":[{"node":"desk","layers":[0,7]},{"node":"mini","layers":[8,11]}]},
 {"pipeline_id":1,"live":false,"stages":[{"node":"laptop","layers":[0,7]},{"node":"desk","layers":[8,11]}]}]}}}`

func example(t *testing.T) *Picture {
	t.Helper()
	p := NewPicture()
	p.Connected = true
	for _, m := range []struct{ name, data string }{
		{"history", `[{"tokens_per_second":10},{"tokens_per_second":60,"first_token_ms":31,"gap_ms":12.4}]`},
		{"frame", strings.ReplaceAll(frame, "\n", "")},
		{"event", `{"seq":1,"time":"2026-01-02T03:04:05Z","level":"info","text":"node desk joined"}`},
		{"event", `{"seq":2,"time":"2026-01-02T03:04:06Z","level":"debug","text":"a connection was refreshed"}`},
		{"event", `{"seq":3,"time":"2026-01-02T03:04:07Z","level":"warn","text":"node laptop died: connection reset"}`},
		{"missed", `3`},
	} {
		if err := p.Apply(m.name, []byte(m.data)); err != nil {
			t.Fatalf("%s: %v", m.name, err)
		}
	}
	return p
}

// The screens are kept as text; -update writes them anew.
func TestScreens(t *testing.T) {
	t.Setenv("TZ", "UTC")
	time.Local = time.UTC
	lost := NewPicture()
	lost.Trouble = "the gateway at http://127.0.0.1:8080 does not answer"
	cut := example(t)
	cut.Connected, cut.Trouble = false, "the gateway ended the live stream"
	empty := NewPicture()
	empty.Connected = true
	empty.Swarm.State = "failed"
	for _, c := range []struct {
		name string
		p    *Picture
		s    Screen
	}{
		{"80x24", example(t), Screen{Width: 80, Height: 24}},
		{"200x60", example(t), Screen{Width: 200, Height: 60, Chosen: 1}},
		{"60x12", example(t), Screen{Width: 60, Height: 12, Said: "pause desk: no such node"}},
		{"cut", cut, Screen{Width: 80, Height: 24}},
		{"lost", lost, Screen{Width: 80, Height: 12}},
		{"empty", empty, Screen{Width: 80, Height: 12}},
		{"tiny", example(t), Screen{Width: 20, Height: 5}},
	} {
		c.s.Now = time.Date(2026, 1, 2, 3, 4, 8, 0, time.UTC)
		got := ansi.Strip(c.s.Draw(c.p)) + "\n"
		path := filepath.Join("testdata", c.name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

// No size of window makes a screen larger than the window.
func TestScreensFit(t *testing.T) {
	p := example(t)
	for i := range 100 {
		n := p.Nodes["desk"]
		n.ID = fmt.Sprintf("node-with-a-long-name-%d", i)
		p.Nodes[n.ID] = n
	}
	for width := 10; width < 220; width += 23 {
		for height := 3; height < 70; height += 11 {
			out := Screen{Width: width, Height: height, Dark: width%2 == 0}.Draw(p)
			if width < 40 || height < 10 {
				continue
			}
			lines := strings.Split(out, "\n")
			if len(lines) != height {
				t.Fatalf("%d x %d: %d lines", width, height, len(lines))
			}
			for _, line := range lines {
				if lipgloss.Width(line) > width {
					t.Fatalf("%d x %d: a line of %d cells: %q", width, height, lipgloss.Width(line), line)
				}
			}
		}
	}
}

func TestWhatIsGoneIsGone(t *testing.T) {
	p := example(t)
	if err := p.Apply("frame", []byte(`{"rev":8,"parts":{"node/desk":null,"model/hecate-demo":null}}`)); err != nil {
		t.Fatal(err)
	}
	if len(p.Nodes) != 2 || len(p.Models) != 0 || p.Swarm.Generation != 4 {
		t.Errorf("%+v", p)
	}
	if err := p.Apply("frame", []byte(`{"rev":9,"parts":{"swarm":{"state":"healthy"}}}`)); err != nil || len(p.Swarm.Why) != 0 {
		t.Errorf("%v, still %q", err, p.Swarm.Why)
	}
	if err := p.Apply("frame", []byte(`{"rev":1,"full":true,"parts":{}}`)); err != nil || len(p.Nodes) != 0 {
		t.Errorf("%v, %d nodes after a full frame", err, len(p.Nodes))
	}
	for _, bad := range []string{"", "[]", `{"parts":{"node/x":3}}`} {
		if p.Apply("frame", []byte(bad)) == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// A broken stream is connected again, ever more slowly, and told of.
func TestTheFeedComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		tries, start := 0, time.Now()
		var heard []string
		follow(ctx, func(context.Context) (io.ReadCloser, error) {
			tries++
			switch tries {
			case 1, 2, 3:
				return nil, errors.New("refused")
			case 4:
				return io.NopCloser(strings.NewReader("event: frame\ndata: {}\n\n: still here\n\nevent: event\nid: a\ndata: {\"text\":\"x\"}\n\n")), nil
			}
			cancel()
			return nil, ctx.Err()
		}, func(n news) {
			if n.ended != nil {
				heard = append(heard, n.ended.Error())
				return
			}
			heard = append(heard, n.name)
		})
		want := []string{"refused", "refused", "refused", "frame", "event", "the gateway ended the live stream"}
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(start); took != (250+500+1000+250)*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

func TestKeys(t *testing.T) {
	var did []string
	m := &model{ctx: t.Context(), picture: example(t), cfg: Config{Steer: func(_ context.Context, node, action string) error {
		did = append(did, action+" "+node)
		if node == "mini" {
			return errors.New("no")
		}
		return nil
	}}}
	m.place()
	press := func(key string) {
		if _, cmd := m.key(key); cmd != nil {
			m.Update(cmd())
		}
	}
	press("down")
	press("p")
	if m.screen.Said != "laptop: pause is done" {
		t.Errorf("said %q", m.screen.Said)
	}
	press("down")
	press("r")
	if m.screen.Said != "resume mini: no" {
		t.Errorf("said %q", m.screen.Said)
	}
	press("down") // around
	press("p")
	if diff := cmp.Diff([]string{"pause laptop", "resume mini", "pause desk"}, did); diff != "" {
		t.Error(diff)
	}
	// The choice stays on its node when others go.
	m.chosen = "mini"
	m.hear(news{name: "frame", data: []byte(`{"rev":9,"parts":{"node/desk":null}}`)})
	if m.screen.Chosen != 1 {
		t.Errorf("line %d is chosen", m.screen.Chosen)
	}
	if m.hear(news{name: "frame", data: []byte(`[]`)}); !m.picture.Connected || m.picture.Trouble == "" {
		t.Error("a frame that is none is no trouble")
	}
	if m.hear(news{name: "frame", data: []byte(`{"rev":9,"parts":{}}`)}); m.picture.Trouble != "" {
		t.Errorf("still %q", m.picture.Trouble)
	}
	m.cfg.Steer, m.cfg.Why = nil, "not here"
	if press("p"); m.screen.Said != "not here" {
		t.Errorf("said %q", m.screen.Said)
	}
	if _, cmd := m.key("q"); cmd == nil || cmd() != tea.Quit() {
		t.Error("q does not quit")
	}
}
