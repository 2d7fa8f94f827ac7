package gateway

import (
	"net/url"
	"strings"
	"testing"

	"hecate/swarm"
)

// Only plain paths at which models are asked may lead to an engine.
func TestPathsOfModels(t *testing.T) {
	for path, want := range map[string]bool{
		"/v1/chat/completions": true, "/v1/embeddings": true, "/v1/audio/speech": true, "/v1/responses": true,
		"/v1/": false, "/v1": false, "/": false, "/metrics": false, "/v2/chat": false,
		"/v1/swarm": false, "/v1/swarm/chaos/arm": false, "/v1/admin/keys": false, "/v1/pool": false, "/v1/models": false, "/v1/models/x": false,
		"/v1/../admin": false, "/v1/a/../../x": false, "/v1//swarm": false, "/v1/%2e%2e/x": false, "/v1/a%2fb": false, "/v1/a b": false, "/v1/é": false,
		"/v1/a;b": false, "/v1/a?b": true, "/v1/a%00": false,
	} {
		u, err := url.Parse(strings.ReplaceAll(path, " ", "%20"))
		if err != nil {
			t.Fatal(err)
		}
		if got := ofModels(u); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func FuzzPathsOfModels(f *testing.F) {
	f.Add("/v1/chat/completions")
	f.Add("/v1/%2e%2e/admin")
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.Parse(path)
		if err != nil || !ofModels(u) {
			return
		}
		if !strings.HasPrefix(u.Path, "/v1/") || strings.Contains(u.Path, "..") || u.Path != u.EscapedPath() || strings.HasPrefix(u.Path, "/v1/swarm/") {
			t.Errorf("%q may reach an engine", path)
		}
	})
}

func TestTheCheapestCopyAndWhetherItIsKnown(t *testing.T) {
	unknown := swarm.Terms{}
	unknown[swarm.TermUnmeasured] = 5
	for name, c := range map[string]struct {
		candidates []swarm.Candidate
		cost       swarm.Cost
		known      bool
	}{
		"none":       {nil, swarm.Infinite, false},
		"unusable":   {[]swarm.Candidate{{Cost: 1}}, swarm.Infinite, false},
		"unmeasured": {[]swarm.Candidate{{Cost: 9, Usable: true, Terms: unknown}}, 9, false},
		"cheapest":   {[]swarm.Candidate{{Cost: 9, Usable: true, Terms: unknown}, {Cost: 7, Usable: true}, {Cost: 1}}, 7, true},
	} {
		if cost, known := cheapest(c.candidates); cost != c.cost || known != c.known {
			t.Errorf("%s: %v, %v", name, cost, known)
		}
	}
}
