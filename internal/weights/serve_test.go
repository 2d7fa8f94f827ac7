package weights

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hecate/internal/control"
	"hecate/internal/control/identity"
)

// Only members of this swarm get anything.
func TestWhoMayFetch(t *testing.T) {
	k := newKit(t)
	other, err := identity.OpenAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	member, stranger := k.credentials(k.authority, identity.RoleNode, "first"), k.credentials(other, identity.RoleNode, "first")
	withCert := func(c *identity.Credentials) *tls.Config {
		cfg := c.Client(identity.RoleGateway, "")
		cfg.RootCAs, cfg.InsecureSkipVerify, cfg.VerifyConnection = nil, true, nil // whom it trusts is not what is tested
		return cfg
	}
	for name, c := range map[string]struct {
		tls    *tls.Config
		status int // 0: no connection
	}{
		"a member":                 {withCert(member), http.StatusOK},
		"no certificate":           {&tls.Config{InsecureSkipVerify: true}, http.StatusForbidden},
		"another swarm's":          {withCert(stranger), 0},
		"a member, over plain TLS": {&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}, 0},
	} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c.tls, DisableKeepAlives: true}}
		for _, path := range []string{"/0", "/" + control.PieceManifest} {
			resp, err := client.Get("https://" + k.url + PathPrefix + k.cutting.Hash + path)
			if err != nil {
				if c.status != 0 {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Errorf("%s: status %d, want %d", name, resp.StatusCode, c.status)
			}
		}
	}
}

// A node's own endpoint does not even shake hands with others than nodes of its
// swarm.
func TestWhoMayFetchFromANode(t *testing.T) {
	k := newKit(t)
	m := k.member("first")
	s := NewServer(ServerConfig{Library: m.cache, Peer: peerOf, Log: k.logger()})
	at := k.listen(m.creds.Server(nil, identity.RoleNode), s.ServeHTTP)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if resp, err := client.Get("https://" + at + PathPrefix + k.cutting.Hash + "/0"); err == nil {
		resp.Body.Close()
		t.Errorf("no certificate: status %d, want no connection", resp.StatusCode)
	}
}

// What a node may ask is bounded.
func TestQuestions(t *testing.T) {
	k := newKit(t)
	client := k.member("first").cfg.Gateway
	for name, c := range map[string]struct {
		path, body string
		status     int
	}{
		"a good one":         {k.cutting.Hash + "/next", `{"pieces":["0"]}`, http.StatusOK},
		"another model":      {strings.Repeat("0", 64) + "/next", `{"pieces":["0"]}`, http.StatusNotFound},
		"no JSON":            {k.cutting.Hash + "/next", `{`, http.StatusBadRequest},
		"no name of a piece": {k.cutting.Hash + "/next", `{"pieces":["../../admin.json"]}`, http.StatusBadRequest},
		"too much":           {k.cutting.Hash + "/next", `{"pieces":["` + strings.Repeat("0", maxQuestion) + `"]}`, http.StatusBadRequest},
		"no hash":            {"x/next", `{}`, http.StatusBadRequest},
	} {
		resp, err := client.Post("https://"+k.url+PathPrefix+c.path, "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d", name, resp.StatusCode, c.status)
		}
	}
}

// No name leads out of the folder: whatever is asked for, the answer is a piece or
// a refusal, never another file.
func FuzzNamesDoNotLeadOut(f *testing.F) {
	secret := "the gateway's secret key"
	root := f.TempDir()
	if err := os.WriteFile(filepath.Join(root, "gateway.key"), []byte(secret), 0o600); err != nil {
		f.Fatal(err)
	}
	hash := strings.Repeat("ab", 32)
	cache, err := OpenCache(filepath.Join(root, "weights"), slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	store, err := OpenStore(filepath.Join(root, "store"))
	if err != nil {
		f.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(cache.Dir(), hash), filepath.Join(root, "weights.gguf")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(cache.Dir(), hash, "3.part"), []byte(secret), 0o600); err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][2]string{
		{hash, "../../gateway.key"}, {"..", "gateway.key"}, {hash, "3.part"}, {hash, "3"}, {"%2e%2e", "gateway.key"}, {hash, "..%2f..%2fgateway.key"},
		{hash + "/..", "x"}, {"", ""}, {hash, "+3"}, {hash, "03"}, {hash, "3\x00"}, {strings.ToUpper(hash), "3"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, h, piece string) {
		for _, lib := range []Library{cache, store} {
			if b, err := lib.Open(h, piece); err == nil {
				data, _ := io.ReadAll(b)
				b.Close()
				if strings.Contains(string(data), secret) {
					t.Errorf("%q %q leads to %q", h, piece, data)
				}
			}
			s := NewServer(ServerConfig{Library: lib, Peer: func(*http.Request) (string, error) { return "n", nil }, Log: slog.New(slog.DiscardHandler)})
			for _, path := range []string{h + "/" + piece, url.PathEscape(h) + "/" + url.PathEscape(piece)} {
				u, err := url.Parse("https://x" + PathPrefix + path)
				if err != nil {
					continue
				}
				w := httptest.NewRecorder()
				s.ServeHTTP(w, &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}, Host: "x"})
				if strings.Contains(w.Body.String(), secret) {
					t.Errorf("GET %s answers with the secret", path)
				}
			}
		}
	})
}
