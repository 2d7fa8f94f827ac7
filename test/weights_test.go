//go:build !noengine

package test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hecate/internal/control/admin"
	"hecate/internal/control/identity"
	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
	"hecate/internal/report"
	"hecate/test/harness"
)

// patience is how long a machine that is busy may take.
const patience = 90 * time.Second

// listedModels asks for the models and what is on its way.
func listedModels(t testing.TB, s *harness.Swarm) map[string]report.Model {
	t.Helper()
	var list []report.Model
	if err := json.Unmarshal([]byte(s.Do("model", "ls", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	models := map[string]report.Model{}
	for _, m := range list {
		models[m.ID] = m
	}
	return models
}

// demoBytes is the size of the demo model, and of all that nodes fetch of it but
// for the list of its tensors.
func demoBytes(t *testing.T, s *harness.Swarm) int64 { return listedModels(t, s)[harness.Model].Bytes }

// listBytes bounds that list.
const listBytes = 64 << 10

// worker starts one on a folder.
func worker(t *testing.T, s *harness.Swarm, name, dir string, args ...string) *harness.Worker {
	t.Helper()
	return harness.JoinVia(t, nil, append([]string{"--name", name, "--data", dir, "--listen", "127.0.0.1:0", "--join", s.Token(), "--memory", "64MiB", "--score", "1"}, args...)...)
}

func awaitHolding(s *harness.Swarm, nodes ...string) {
	s.T.Helper()
	s.Await(strings.Join(nodes, " and ")+" hold the demo model", patience, func() bool {
		holding := 0
		for _, n := range s.Status().Nodes {
			whole := len(n.Fragments) == 1 && n.Fragments[0].Layers.Len() == 12
			if n.Alive && whole && slices.Contains(nodes, n.ID) {
				holding++
			}
		}
		return holding == len(nodes) && listedModels(s.T, s)[harness.Model].Ready
	})
}

// A node with an empty folder fetches its layers and serves; the next one takes
// them from it: each byte leaves the gateway once.
func TestEachByteLeavesTheGatewayOnce(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	size := demoBytes(t, s)
	first := worker(t, s, "first", filepath.Join(t.TempDir(), "first"))
	awaitHolding(s, "first")
	sent := listedModels(t, s)[harness.Model].SentBytes
	if sent < size*9/10 || sent > size+listBytes {
		t.Errorf("the gateway sent %d bytes for a model of %d", sent, size)
	}
	dir := filepath.Join(t.TempDir(), "second")
	worker(t, s, "second", dir)
	awaitHolding(s, "first", "second")
	if again := listedModels(t, s)[harness.Model].SentBytes; again != sent {
		t.Errorf("the gateway sent %d bytes more to the second node, which has a neighbour", again-sent)
	}
	if got := receivedFrom(s, "first"); len(got) != 1 || got[""] != sent {
		t.Errorf("the first was sent %v by sender, want %d by the gateway alone", got, sent)
	}
	if got := receivedFrom(s, "second"); len(got) != 1 || got["first"] != sent {
		t.Errorf("the second was sent %v by sender, want %d by the first alone", got, sent)
	}
	if table := s.Do("model", "ls", "--received"); !strings.Contains(table, "second  0-11    first") {
		t.Errorf("the table does not say that layers 0-11 came to the second from the first:\n%s", table)
	}
	if pieces, err := filepath.Glob(filepath.Join(dir, "weights", "*", "*")); err != nil || len(pieces) < 12 {
		t.Errorf("the second node has %d pieces, want one for each layer and more", len(pieces))
	}
	if err := first.Stop(); err != nil {
		t.Error(err)
	}
	s.Await("the second answers alone", patience, func() bool {
		code, header, _, err := s.TryPost(context.Background(), "/v1/chat/completions", harness.Question(harness.Story, map[string]any{"max_tokens": 4}))
		return err == nil && code == http.StatusOK && strings.HasPrefix(header.Get("X-Hecate-Route"), "second[")
	})
}

// receivedFrom is what a node was sent of weights, by sender.
func receivedFrom(s *harness.Swarm, node string) map[string]int64 {
	from := map[string]int64{}
	for _, n := range s.Status().Nodes {
		for _, r := range n.Received {
			if n.ID == node {
				from[r.From] += r.Bytes
			}
		}
	}
	return from
}

// inFlight is what a process that is killed may have been sent without keeping it.
const inFlight = 512 << 10

// A node that is killed half way goes on from there; a piece that decayed
// meanwhile is noticed, named and fetched again.
func TestAFetchGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, "--send-rate", "700KB")
	size := demoBytes(t, s)
	dir := filepath.Join(t.TempDir(), "first")
	w := worker(t, s, "first", dir)
	s.Await("the first layers are on its disk", patience, func() bool {
		first, _ := filepath.Glob(filepath.Join(dir, "weights", "*", "1"))
		second, _ := filepath.Glob(filepath.Join(dir, "weights", "*", "2"))
		return len(first) > 0 && len(second) > 0
	})
	if err := syscall.Kill(w.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err == nil {
		t.Fatal("it ended well, killed")
	}
	if strings.Contains(w.Log(), `"layers":"11"`) {
		t.Fatal("it had everything before it was killed")
	}
	decayed := piecesOf(t, dir, "1")[0]
	if err := os.WriteFile(decayed, []byte("decayed"), 0o600); err != nil {
		t.Fatal(err)
	}
	lost, err := os.Stat(piecesOf(t, dir, "2")[0])
	if err != nil {
		t.Fatal(err)
	}
	again := worker(t, s, "first", dir)
	awaitHolding(s, "first")
	if sent, most := listedModels(t, s)[harness.Model].SentBytes, size+listBytes+inFlight+lost.Size(); sent > most {
		t.Errorf("%d bytes were sent for a model of %d, want at most %d: it began anew", sent, size, most)
	}
	if log := again.Log(); !strings.Contains(log, "piece 1 is corrupted") {
		t.Errorf("the log does not name the piece that decayed:\n%s", log)
	}
	s.Ask(harness.Story, map[string]any{"max_tokens": 8})
}

// piecesOf finds a piece in a node's folder.
func piecesOf(t *testing.T, dir, name string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "weights", "*", name))
	if err != nil || len(found) == 0 {
		t.Fatalf("no piece %s in %s", name, dir)
	}
	return found
}

// onlyModel is where members talk to a gateway, and the hash of the one model that it has.
func onlyModel(t *testing.T, s *harness.Swarm) (gateway, hash string) {
	t.Helper()
	client, err := admin.Open(s.Data)
	if err != nil {
		t.Fatal(err)
	}
	info, err := client.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	models, err := client.Models(t.Context())
	if err != nil || len(models) != 1 {
		t.Fatalf("%v, %d models", err, len(models))
	}
	return "https://" + info.Join[0], models[0].Hash
}

// Weights are for members: a machine without a certificate, or with another
// swarm's, gets nothing.
func TestStrangersFetchNothing(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	gateway, hash := onlyModel(t, s)
	address := gateway + "/v1/weights/" + hash + "/"
	fetch := func(c *tls.Config, path string) (int, error) {
		c.InsecureSkipVerify, c.ServerName = true, "gateway.hecate.internal"
		resp, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}).Get(address + path)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		return resp.StatusCode, nil
	}
	for _, path := range []string{"0", "manifest", "..%2f..%2fadmin.json"} {
		if code, err := fetch(&tls.Config{}, path); err != nil || code != http.StatusForbidden {
			t.Errorf("%s without a certificate: %d %v, want 403", path, code, err)
		}
	}
	other, err := identity.OpenAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := other.Issue(identity.RoleNode, "first", key.Public())
	if err != nil {
		t.Fatal(err)
	}
	forged := tls.Certificate{Certificate: [][]byte{chain[0].Raw, chain[1].Raw}, PrivateKey: key}
	if code, err := fetch(&tls.Config{Certificates: []tls.Certificate{forged}}, "0"); err == nil {
		t.Errorf("with another swarm's certificate: %d, want no connection", code)
	}
}

// smallModel writes a model that fits beside the demo.
func smallModel(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".gguf")
	err := randmodel.WriteFile(path, randmodel.Config{
		Name: name, Layers: 6, Width: 256, Heads: 4, KVHeads: 2, Inner: 512, Vocab: 1024, Context: 512, Kind: gguf.Q8_0, Seed: 3, Tied: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A model comes and goes under load: nobody's request is lost, and an answer of
// the model that goes is finished.
func TestAModelComesAndGoesUnderLoad(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	for _, name := range []string{"first", "second"} {
		worker(t, s, name, filepath.Join(t.TempDir(), name))
	}
	awaitHolding(s, "first", "second")
	var asked, failed atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				asked.Add(1)
				a, err := s.AskStream(context.Background(), harness.Story, map[string]any{"max_tokens": 16}, nil)
				if err != nil || a.Broken != nil || !a.Done || a.Fault != nil {
					failed.Add(1)
					t.Errorf("a request failed: %v %v %v", err, a.Broken, a.Fault)
				}
			}
		})
	}
	s.Do("model", "add", smallModel(t, "small"), "--copies", "2")
	ready := func() bool { m := listedModels(t, s)["small"]; return m.Ready && len(m.Pipelines) == 2 }
	s.Await("the new model is ready", patience, ready)
	goes := make(chan harness.Stream, 1)
	began := make(chan struct{})
	once := sync.OnceFunc(func() { close(began) })
	go func() {
		a, err := s.AskStream(context.Background(), harness.Story, map[string]any{"model": "small", "max_tokens": 400, "ignore_eos": true}, func(string) { once() })
		if err != nil {
			t.Error(err)
		}
		goes <- a
		once()
	}()
	<-began
	s.Do("model", "rm", "small")
	if a := <-goes; !a.Done || a.Broken != nil || a.Fault != nil {
		t.Errorf("the answer of the model that goes: done %v, %v, %v", a.Done, a.Broken, a.Fault)
	}
	s.Await("the nodes let go of it", patience, func() bool {
		for _, n := range s.Status().Nodes {
			for _, f := range n.Fragments {
				if f.Model == "small" {
					return false
				}
			}
		}
		return true
	})
	close(stop)
	wg.Wait()
	if asked.Load() < 4 || failed.Load() > 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), asked.Load())
	}
	if code, _, _ := s.Post(context.Background(), "/v1/chat/completions", harness.Question("Hi", map[string]any{"model": "small"})); code != http.StatusNotFound {
		t.Errorf("the model that is gone answers %d, want 404", code)
	}
}

// A node whose disk is full says so, the swarm goes on serving, and the node goes
// on by itself when there is room.
func TestAFullDiskMendsItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be had here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("unmount the small disk: %v: %s", err, out)
		}
	})
	s := harness.Serve(t)
	worker(t, s, "roomy", filepath.Join(t.TempDir(), "roomy"))
	awaitHolding(s, "roomy")
	worker(t, s, "full", filepath.Join(dir, "full"))
	s.Await("it says that its disk is full", patience, func() bool {
		return strings.Contains(strings.Join(s.Status().Why, "\n"), "the disk is full: piece")
	})
	s.Ask(harness.Story, map[string]any{"max_tokens": 4})
	if out, err := exec.Command("mount", "-o", "remount,size=16m", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	awaitHolding(s, "roomy", "full")
}
