package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestThePage(t *testing.T) {
	plain := get(t)
	body, err := io.ReadAll(plain.Body)
	if err != nil || string(body) != string(page) || plain.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %d bytes, %v", plain.StatusCode, len(body), err)
	}
	packed := get(t, "Accept-Encoding", "br, gzip;q=0.8")
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(z); err != nil || string(body) != string(page) {
		t.Errorf("compressed: %d bytes, %v", len(body), err)
	}
	if got := get(t, "Accept-Encoding", "gzip;q=0").Header.Get("Content-Encoding"); got != "" {
		t.Errorf("encoding %q for who wants none", got)
	}
	again := get(t, "If-None-Match", plain.Header.Get("ETag"))
	if again.StatusCode != http.StatusNotModified {
		t.Errorf("status %d for a page that is known", again.StatusCode)
	}
}

// Whatever the page needs stands in it: one request, and none to anybody else.
func TestThePageNeedsNobodyElse(t *testing.T) {
	text := string(page)
	for _, bad := range []string{`<script src`, `<link rel="stylesheet"`, `url(http`, `url("http`, `@import`, "eval(", "new Function("} {
		if strings.Contains(text, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if n := len(page); n > 250_000 {
		t.Errorf("the page has grown to %d bytes", n)
	}
}

func TestThePolicyNamesScriptAndStyleByHash(t *testing.T) {
	policy := get(t).Header.Get("Content-Security-Policy")
	for _, want := range []string{`default-src 'none'`, `script-src 'sha256-[^ ]+';`, `style-src 'sha256-[^ ]+';`, `connect-src 'self'`, `frame-ancestors 'none'`, `form-action 'none'`} {
		if !regexp.MustCompile(want).MatchString(policy) {
			t.Errorf("no %s in %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
}
