package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hecate/internal/control/keys"
	"hecate/internal/gateway/engines"
)

// A key that is for certain models reaches no other one, however the body names it.
func TestAKeyIsHeldToItsModelsByWhateverName(t *testing.T) {
	g := standInGateway(&troupe{})
	g.engines = engines.New(engines.Config{Log: g.log})
	h := g.foreign(g.routes())
	ask := func(path, body string) (int, string) {
		r := httptest.NewRequestWithContext(withKey(t.Context(), &bound{&keys.Record{Models: []string{"other"}}, &g.allowances}), http.MethodPost, path, strings.NewReader(body))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const rest = `"max_tokens":3,"messages":[{"role":"user","content":"hi"}],"prompt":"hi","input":"hi","tokens":[1]}`
	if code, text := ask(chatPath, `{"model":"other",`+rest); code != http.StatusOK {
		t.Fatalf("its own model: %d %s", code, text)
	}
	for _, path := range []string{chatPath, completionPath, "/v1/embeddings", "/v1/tokenize", "/v1/detokenize"} {
		for _, names := range []string{
			`"model":"big"`, `"Model":"big"`, `"model":"other","model":"big"`, `"model":"other","Model":"big"`,
			`"m\u006fdel":"big"`, `"model":"other","mod\u0065l":"big"`, `"model":null,"model":"big"`,
		} {
			if code, text := ask(path, "{"+names+","+rest); code < 400 || code >= 500 {
				t.Errorf("%s, %s: %d %s", path, names, code, text)
			}
		}
	}
}
