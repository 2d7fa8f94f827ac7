package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hecate/swarm"
)

// Names of models hold more than letters.
func TestExplainAsksForTheModelThatWasNamed(t *testing.T) {
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("model")
		_ = json.NewEncoder(w).Encode(swarm.Explanation{})
	}))
	defer s.Close()
	for _, model := range []string{"qwen2.5:7b-q4", "a+b@c", "paid/model name&more=x"} {
		if _, errs, code := probe(t, "route", "explain", model, "--url", s.URL); code != exitFine || asked != model {
			t.Errorf("%s: asked for %q, code %d %s", model, asked, code, errs)
		}
	}
}

func TestAddressesOfGateways(t *testing.T) {
	for _, url := range []string{"127.0.0.1:8080", "attic.lan", "ftp://attic.lan"} {
		if _, errs, code := probe(t, "status", "--url", url); code != exitUsage || !strings.Contains(errs, "--url "+url+" is no address of a gateway, want http://HOST:PORT") {
			t.Errorf("%s: code %d, %q", url, code, errs)
		}
	}
}
