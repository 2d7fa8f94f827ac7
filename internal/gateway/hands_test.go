package gateway

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hecate/internal/event"
	"hecate/internal/gateway/admission"
	"hecate/internal/gateway/answer"
	"hecate/swarm"
)

// A token that anybody on the way could read is not taken.
func TestWhoAdministers(t *testing.T) {
	for _, c := range []struct {
		name, remote, token string
		encrypted, nobody   bool
		want                string
	}{
		{"from here", "127.0.0.1:5000", "right", false, false, ""},
		{"from here, IPv6", "[::1]:5000", "right", false, false, ""},
		{"from elsewhere", "192.0.2.7:5000", "right", false, false, "admin_needs_encryption"},
		{"from elsewhere, encrypted", "192.0.2.7:5000", "right", true, false, ""},
		{"no token", "127.0.0.1:5000", "", false, false, "admin_token_missing"},
		{"wrong token", "127.0.0.1:5000", "wrong", false, false, "admin_token_wrong"},
		{"a gateway without administration", "127.0.0.1:5000", "right", false, true, "admin_not_here"},
		{"no address", "?", "right", false, false, "admin_needs_encryption"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &Gateway{log: slog.New(slog.DiscardHandler)}
			if !c.nobody {
				g.cfg.Administrator = func(token string) bool { return token == "right" }
			}
			r := httptest.NewRequest("POST", "/v1/swarm/nodes/desk/pause", nil)
			r.RemoteAddr = c.remote
			r.Header.Set(adminHeader, c.token)
			if c.encrypted {
				r.TLS = &tls.ConnectionState{}
			}
			got := ""
			if e := g.administrator(r); e != nil {
				got = *e.Code
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestTrafficShowsShortAnswersToo(t *testing.T) {
	tr := newTraffic()
	grant := func(token uint64) answer.Grant {
		return answer.Grant{Token: token, Route: swarm.Route{Stages: []swarm.Stage{{Node: "desk", Layers: swarm.LayerRange{Last: 11}}}}}
	}
	counts := func() (out []int) {
		for _, f := range tr.look() {
			out = append(out, f.count)
		}
		return out
	}
	for token := range uint64(3) {
		tr.begin(answer.Need{Job: fmt.Sprint("job", token), Model: "demo"}, grant(token))
	}
	if m := tr.modelOf("job1"); m != "demo" {
		t.Errorf("job1 asks %q", m)
	}
	tr.end(grant(0))
	tr.end(grant(1))
	tr.end(grant(1)) // a release after a rescue that failed
	for i, want := range [][]int{{3}, {1}} {
		if diff := cmp.Diff(want, counts()); diff != "" {
			t.Errorf("look %d: %s", i, diff)
		}
	}
	tr.end(grant(2))
	counts() // the second in which it ended
	if got := counts(); got != nil || len(tr.shape) != 0 || tr.modelOf("job2") != "" {
		t.Errorf("nothing runs, but %v, %d routes are remembered", got, len(tr.shape))
	}
}

func TestACrowdOfRefusalsIsOneEvent(t *testing.T) {
	r, s := newRefusals(), event.New(0)
	for range 50 {
		r.note("demo", fmt.Errorf("no luck: %w", &admission.Refusal{Reason: admission.QueueFull}))
	}
	r.note("demo", fmt.Errorf("something else"))
	r.tell(s)
	r.tell(s)
	events, _ := s.After(0)
	if len(events) != 1 || events[0].String() != "50 requests for demo were refused: queue_full" {
		t.Errorf("%v", events)
	}
}
