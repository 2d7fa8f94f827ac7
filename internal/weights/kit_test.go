package weights

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hecate/internal/control"
	"hecate/internal/control/identity"
	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
)

// kit is a swarm's gateway with one model of 4 layers in its store.
type kit struct {
	t         *testing.T
	authority *identity.Authority
	store     *Store
	cutting   *Cutting
	path      string // of the model's file
	server    *Server
	url       string // host:port of the gateway
	log       safeLog

	mu      sync.Mutex
	holders map[string][]Holder // by piece
	wrap    func(http.Handler) http.Handler

	connects atomic.Int64 // to all servers
}

// safeLog collects log lines.
type safeLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (k *kit) logger() *slog.Logger { return slog.New(slog.NewTextHandler(&k.log, nil)) }

// model writes a model's file.
func model(t testing.TB, dir string, tied bool) string {
	t.Helper()
	c := randmodel.Tiny(gguf.Q8_0, 7)
	c.Tied, c.RopeFactors = tied, true
	path := filepath.Join(dir, "model.gguf")
	if err := randmodel.WriteFile(path, c); err != nil {
		t.Fatal(err)
	}
	return path
}

func newKit(t *testing.T) *kit {
	t.Helper()
	k := &kit{t: t, holders: map[string][]Holder{}}
	var err error
	if k.authority, err = identity.OpenAuthority(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if k.store, err = OpenStore(filepath.Join(t.TempDir(), "store")); err != nil {
		t.Fatal(err)
	}
	k.path = model(t, t.TempDir(), false)
	if k.cutting, err = k.store.Add(t.Context(), k.path, nil); err != nil {
		t.Fatal(err)
	}
	k.server = NewServer(ServerConfig{
		Library: k.store, Peer: peerOf, Log: k.logger(),
		Holders: func(_, piece string) []Holder {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.holders[piece]
		},
	})
	k.url = k.listen(k.credentials(k.authority, identity.RoleGateway, "gateway").OpenServer(), func(w http.ResponseWriter, r *http.Request) {
		var h http.Handler = k.server
		k.mu.Lock()
		if k.wrap != nil {
			h = k.wrap(h)
		}
		k.mu.Unlock()
		h.ServeHTTP(w, r)
	})
	return k
}

func peerOf(r *http.Request) (string, error) {
	if len(r.TLS.VerifiedChains) == 0 {
		return "", errors.New("no certificate")
	}
	return identity.PeerName(*r.TLS)
}

// listen serves and gives the address.
func (k *kit) listen(c *tls.Config, h http.HandlerFunc) string {
	s := httptest.NewUnstartedServer(h)
	s.TLS = c
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			k.connects.Add(1)
		}
	}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	k.t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "https://")
}

func (k *kit) credentials(a *identity.Authority, role identity.Role, name string) *identity.Credentials {
	k.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		k.t.Fatal(err)
	}
	chain, err := a.Issue(role, name, key.Public())
	if err != nil {
		k.t.Fatal(err)
	}
	c, err := identity.NewCredentials(key, chain)
	if err != nil {
		k.t.Fatal(err)
	}
	return c
}

// member is a node with a cache and a fetcher.
type member struct {
	*Fetcher
	cache *Cache
	creds *identity.Credentials
	name  string
}

func (k *kit) member(name string) *member {
	k.t.Helper()
	cache, err := OpenCache(filepath.Join(k.t.TempDir(), "weights"), slog.New(slog.DiscardHandler))
	if err != nil {
		k.t.Fatal(err)
	}
	m := &member{cache: cache, creds: k.credentials(k.authority, identity.RoleNode, name), name: name}
	reach := func(role identity.Role, name string) *http.Client { return Client(m.creds, role, name) }
	m.Fetcher = NewFetcher(FetcherConfig{
		Cache: cache, Gateways: func() []string { return []string{k.url} }, Log: k.logger(),
		Gateway: reach(identity.RoleGateway, ""), Node: func(n string) *http.Client { return reach(identity.RoleNode, n) },
	})
	k.t.Cleanup(m.Fetcher.Close)
	return m
}

// neighbour makes a member serve its cache, or another library, and the gateway
// know it.
func (k *kit) neighbour(m *member, lib Library, pieces []control.Piece) *Server {
	s := NewServer(ServerConfig{Library: lib, Peer: peerOf, Log: k.logger()})
	at := k.listen(m.creds.Server(nil, identity.RoleNode), s.ServeHTTP)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range pieces {
		k.holders[p.Name] = append(k.holders[p.Name], Holder{m.name, []string{at}})
	}
	return s
}

// fetchAll fetches what all layers need, as a node does.
func (m *member) fetchAll(ctx context.Context, k *kit) error {
	for {
		lacking, err := m.cache.Lacking(k.cutting.Hash, k.cutting.Pieces, 0, 3)
		if err != nil || len(lacking) == 0 {
			return err
		}
		if err := m.Fetch(ctx, k.cutting.Hash, lacking, nil, nil); err != nil {
			return err
		}
	}
}

// fetchLayers fetches layer by layer, as a node's loader does.
func (m *member) fetchLayers(ctx context.Context, k *kit) error {
	lacking := func(layer int) ([]control.Piece, error) {
		return m.cache.Lacking(k.cutting.Hash, k.cutting.Pieces, layer, layer)
	}
	for layer := 0; layer < 4; {
		now, err := lacking(layer)
		if err != nil {
			return err
		}
		if len(now) == 0 {
			layer++
			continue
		}
		var then []control.Piece
		for next := layer + 1; next < 4; next++ {
			more, err := lacking(next)
			if err != nil {
				return err
			}
			for _, p := range more {
				if !slices.Contains(then, p) && !slices.Contains(now, p) {
					then = append(then, p)
				}
			}
		}
		if err := m.Fetch(ctx, k.cutting.Hash, now, then, nil); err != nil {
			return err
		}
	}
	return nil
}

// total is what all pieces have, in bytes.
func (c *Cutting) total() (n int64) {
	for _, p := range c.Pieces {
		n += p.Bytes
	}
	return n
}

func (c *Cutting) piece(name string) control.Piece {
	for _, p := range c.Pieces {
		if p.Name == name {
			return p
		}
	}
	return control.Piece{}
}

// sameAsFile compares what the engine would read with the model's own file.
func (k *kit) sameAsFile(m *member) {
	k.t.Helper()
	whole, err := os.ReadFile(k.path)
	if err != nil {
		k.t.Fatal(err)
	}
	v, err := m.cache.View(k.cutting.Hash, 0, 3)
	if err != nil {
		k.t.Fatal(err)
	}
	defer v.Close()
	man, err := m.cache.Manifest(k.cutting.Hash)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, s := range man.Spans {
		got := make([]byte, s.Bytes)
		if _, err := v.ReadAt(got, s.Offset); err != nil {
			k.t.Fatalf("%s: %v", s.Name, err)
		}
		if !bytes.Equal(got, whole[s.Offset:s.Offset+s.Bytes]) {
			k.t.Errorf("%s differs from the file", s.Name)
		}
	}
}
