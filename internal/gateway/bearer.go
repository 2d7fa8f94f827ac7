package gateway

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"hecate/internal/control/keys"
	"hecate/internal/gateway/openai"
	"hecate/internal/web"
)

// open is what anybody may ask for: probes of load balancers learn that a process
// runs, and the page is the same for all and asks for its key itself.
func open(path string) bool {
	return path == "/healthz" || slices.Contains(web.Paths(), path)
}

// admitted lets through who shows an API key, when keys are asked for.
func (g *Gateway) admitted(next http.Handler) http.Handler {
	if g.keys == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		key, e := g.checkKey(r.Header.Get("Authorization"))
		if e != nil {
			if e.Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="hecate"`)
			}
			e.Write(w)
			return
		}
		if generates(r) {
			done, e := g.allowances.take(key, time.Now())
			g.allowances.head(key, w.Header(), time.Now())
			if e != nil {
				e.Write(w)
				return
			}
			defer done()
		}
		next.ServeHTTP(w, r.WithContext(withKey(r.Context(), &bound{key, &g.allowances})))
	})
}

// bearerOf is the key in an Authorization header, "" for none.
func bearerOf(header string) string {
	scheme, key, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// checkKey answers as OpenAI does to a missing and to a wrong key. It never
// repeats what it was given.
func (g *Gateway) checkKey(header string) (*keys.Record, *openai.Error) {
	key := bearerOf(header)
	if key == "" {
		return nil, openai.Unauthorized("", "This gateway wants an API key: send it in the header \"Authorization: Bearer KEY\". `hecate key create` makes one.")
	}
	select {
	case <-g.keys.Ready():
	default:
		return nil, openai.Unavailable("not_ready", "This gateway is starting and does not know its API keys yet.", dispatchRetry)
	}
	record, err := g.keys.Check(key)
	if err != nil {
		return nil, openai.Unauthorized("invalid_api_key", "The API key was refused: "+err.Error()+".")
	}
	return record, nil
}
