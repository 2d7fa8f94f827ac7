package gateway

import (
	"net/http"
	"strings"

	"hecate/internal/gateway/openai"
)

// elsewhere answers for what the mux does not know: a path that does not exist,
// or one that wants another method.
func elsewhere(mux *http.ServeMux) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		allowed := methodsOf(mux, r)
		if allowed == nil {
			e := openai.BadRequest("", "unknown_url", "There is no %s %s here.", r.Method, r.URL.Path)
			e.Status = http.StatusNotFound
			return e
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		e := openai.BadRequest("", "method_not_allowed", "%s does not take %s, only %s.", r.URL.Path, r.Method, strings.Join(allowed, ", "))
		e.Status = http.StatusMethodNotAllowed
		return e
	}
}

// methodsOf lists the methods that a request's path takes, nil when there is no
// such path.
func methodsOf(mux *http.ServeMux, r *http.Request) (methods []string) {
	probe := r.Clone(r.Context())
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		probe.Method = m
		if _, pattern := mux.Handler(probe); pattern != "/" && pattern != "" {
			methods = append(methods, m)
		}
	}
	if methods != nil {
		methods = append(methods, http.MethodOptions)
	}
	return methods
}
