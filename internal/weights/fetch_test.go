package weights

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/control"
)

// An empty node gets the whole model, bit by bit that of the file.
func TestFetchingAModel(t *testing.T) {
	k := newKit(t)
	m := k.member("first")
	if err := m.fetchAll(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.sameAsFile(m)
	if sent := k.server.Served()[k.cutting.Hash]; sent != k.cutting.total() {
		t.Errorf("the gateway sent %d bytes, want %d", sent, k.cutting.total())
	}
}

// What a neighbour has does not come from the gateway again.
func TestTheSecondNodeTakesFromTheFirst(t *testing.T) {
	k := newKit(t)
	first, second := k.member("first"), k.member("second")
	if err := first.fetchAll(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	gave := k.neighbour(first, first.cache, k.cutting.Pieces)
	before := k.server.Served()[k.cutting.Hash]
	if err := second.fetchAll(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.sameAsFile(second)
	if sent := k.server.Served()[k.cutting.Hash] - before; sent != 0 {
		t.Errorf("the gateway sent %d bytes once more", sent)
	}
	if sent := gave.Served()[k.cutting.Hash]; sent != k.cutting.total() {
		t.Errorf("the neighbour sent %d bytes, want %d", sent, k.cutting.total())
	}
}

// Two nodes that start together share the work: each byte leaves the gateway once.
func TestTwoNodesAtOnce(t *testing.T) {
	k := newKit(t)
	members := []*member{k.member("first"), k.member("second")}
	for i, m := range members {
		s := NewServer(ServerConfig{Library: m.cache, Peer: peerOf, Log: k.logger()})
		at := k.listen(m.creds.Server(nil, "node"), s.ServeHTTP)
		members[i].Fetcher.cfg.Stored = func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			for _, p := range k.cutting.Pieces {
				list := k.holders[p.Name]
				if m.cache.Has(k.cutting.Hash, p.Name) && !holds(list, m.name) {
					k.holders[p.Name] = append(list, Holder{m.name, []string{at}})
				}
			}
		}
	}
	var wg sync.WaitGroup
	for _, m := range members {
		wg.Go(func() {
			if err := m.fetchAll(t.Context(), k); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, m := range members {
		k.sameAsFile(m)
	}
	if sent := k.server.Served()[k.cutting.Hash]; sent != k.cutting.total() {
		t.Errorf("the gateway sent %d bytes, want %d: each once", sent, k.cutting.total())
	}
}

func holds(list []Holder, node string) bool {
	for _, h := range list {
		if h.Node == node {
			return true
		}
	}
	return false
}

// Over a far link, round trips cost more than bytes: one connection to each
// sender carries all pieces, and one question tells the way to several.
func TestFewRoundTrips(t *testing.T) {
	k := newKit(t)
	var asked atomic.Int64
	k.wrap = func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				asked.Add(1)
			}
			h.ServeHTTP(w, r)
		})
	}
	first, second := k.member("first"), k.member("second")
	if err := first.fetchLayers(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.sameAsFile(first)
	// The list of pieces comes first, alone; then all others.
	if n := k.connects.Load(); n != 1 {
		t.Errorf("%d connections to the gateway, want 1", n)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("%d questions for %d pieces, want 2", n, len(k.cutting.Pieces))
	}
	k.neighbour(first, first.cache, k.cutting.Pieces)
	if err := second.fetchLayers(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.sameAsFile(second)
	if n := k.connects.Load(); n != 3 {
		t.Errorf("%d connections to the gateway and a neighbour by the second node, want 2", n-1)
	}
}

// What was asked for a while ago may be somebody else's turn by now, and a sender
// that failed is not gone to again on an old word.
func TestLeadsGetOld(t *testing.T) {
	var l leads
	now, pieces := time.Unix(1000, 0), []control.Piece{{Name: "1"}, {Name: "2"}, {Name: "3"}}
	l.keep("h", "gw", []Assignment{{Piece: "2"}, {Piece: "3", Node: "a"}, {Piece: "1", Node: "b"}}, now)
	if _, ok := l.take("other", pieces, now); ok {
		t.Error("a lead of another model was taken")
	}
	if x, ok := l.take("h", pieces[1:], now); !ok || x.Piece != "2" || x.gateway != "gw" {
		t.Errorf("the first lead: %+v", x)
	}
	l.drop("a")
	if x, ok := l.take("h", pieces[1:], now); ok {
		t.Errorf("a lead to one that failed: %+v", x)
	}
	if x, ok := l.take("h", pieces, now.Add(leadTime+1)); ok {
		t.Errorf("an old lead: %+v", x)
	}
}

// cutAfter breaks an answer off after some bytes.
type cutAfter struct {
	http.ResponseWriter
	left int64
	cuts *atomic.Int64
}

func (c *cutAfter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutAfter) Write(b []byte) (int, error) {
	n := min(int64(len(b)), c.left)
	c.left -= n
	k, err := c.ResponseWriter.Write(b[:n])
	if err == nil && n < int64(len(b)) {
		err = http.NewResponseController(c.ResponseWriter).Flush()
		c.cuts.Add(1)
		panic(errors.Join(http.ErrAbortHandler, err))
	}
	return k, err
}

// A transfer that is cut goes on where it was: the same bytes do not come twice.
func TestACutTransferGoesOn(t *testing.T) {
	k := newKit(t)
	m := k.member("first")
	piece := k.cutting.piece("1")
	if err := m.Fetch(t.Context(), k.cutting.Hash, []control.Piece{k.cutting.piece(control.PieceManifest)}, nil, nil); err != nil {
		t.Fatal(err)
	}
	// Half of it is there, from a transfer in an earlier life.
	spans := mustManifest(t, m).spans("1")
	p, err := m.cache.part(k.cutting.Hash, piece, spans)
	if err != nil {
		t.Fatal(err)
	}
	blob, err := k.store.Open(k.cutting.Hash, "1")
	if err != nil {
		t.Fatal(err)
	}
	half := piece.Bytes / 2
	if _, err := io.CopyN(p, blob, half); err != nil {
		t.Fatal(err)
	}
	p.file.Close()
	blob.Close()
	before := k.server.Served()[k.cutting.Hash]
	if err := m.Fetch(t.Context(), k.cutting.Hash, []control.Piece{piece}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if sent := k.server.Served()[k.cutting.Hash] - before; sent != piece.Bytes-half {
		t.Errorf("%d bytes came for the second half, want %d", sent, piece.Bytes-half)
	}
}

func mustManifest(t *testing.T, m *member) *Manifest {
	t.Helper()
	entries, err := os.ReadDir(m.cache.Dir())
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v %v", entries, err)
	}
	man, err := m.cache.Manifest(entries[0].Name())
	if err != nil {
		t.Fatal(err)
	}
	return man
}

// A gateway that breaks off every long answer is asked again, from there on.
func TestAGatewayThatBreaksOff(t *testing.T) {
	k := newKit(t)
	m := k.member("first")
	cuts, longest := &atomic.Int64{}, int64(0)
	for _, p := range k.cutting.Pieces {
		longest = max(longest, p.Bytes)
	}
	k.wrap = func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if recover() != nil {
					panic(http.ErrAbortHandler) // it takes no other for a cut
				}
			}()
			h.ServeHTTP(&cutAfter{w, longest * 2 / 3, cuts}, r)
		})
	}
	if err := m.fetchAll(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.sameAsFile(m)
	if cuts.Load() < 2 || !strings.Contains(k.log.String(), "was cut and goes on") {
		t.Errorf("%d answers were cut, want 2 or more:\n%s", cuts.Load(), k.log.String())
	}
}

// A piece goes on at whatever byte it was cut, also inside a tensor.
func TestAPieceGoesOnAtAnyByte(t *testing.T) {
	k := newKit(t)
	data := []byte("the first tensor|and the second one|third")
	spans, piece := spansOfText(data, 17, 18)
	for at := range len(data) + 1 {
		c, err := OpenCache(t.TempDir(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		first, err := c.part(k.cutting.Hash, piece, spans)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := first.Write(data[:at]); err != nil {
			t.Fatal(err)
		}
		first.file.Close()
		second, err := c.part(k.cutting.Hash, piece, spans)
		if err != nil {
			t.Fatal(err)
		}
		if second.held != int64(at) {
			t.Fatalf("cut at %d: %d bytes are taken up", at, second.held)
		}
		if _, err := second.Write(data[at:]); err != nil {
			t.Fatal(err)
		}
		if err := c.finish(pieceKey{k.cutting.Hash, "7"}, second); err != nil || !second.whole() {
			t.Fatalf("cut at %d: %v", at, err)
		}
		if err := c.verify(k.cutting.Hash, piece); err != nil {
			t.Fatal(err)
		}
	}
}

// spansOfText makes a piece 7 of some text.
func spansOfText(data []byte, sizes ...int) (spans []Span, piece control.Piece) {
	rest := data
	for _, n := range append(sizes, len(data)-sizes[0]-sizes[1]) {
		spans = append(spans, Span{Name: "t", Piece: "7", Bytes: int64(n), Sum: sumOfBytes(rest[:n])})
		rest = rest[n:]
	}
	return spans, control.Piece{Name: "7", Bytes: int64(len(data)), Sum: sumOfBytes(data)}
}

// What lies there from an earlier life is believed only as far as its hashes hold.
func TestARestThatWasDamaged(t *testing.T) {
	k := newKit(t)
	data := []byte("the first tensor|and the second one|third")
	spans, piece := spansOfText(data, 17, 18)
	for name, c := range map[string]struct {
		rest string
		held int64
	}{
		"a damaged first tensor":  {"THE first tensor|and the", 0},
		"a damaged second tensor": {"the first tensor|and THE second one|thi", 17},
		"longer than the piece":   {string(data) + "!", 0},
	} {
		cache, err := OpenCache(t.TempDir(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(cache.Dir()+"/"+k.cutting.Hash, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(cache.path(k.cutting.Hash, "7")+partSuffix, []byte(c.rest), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := cache.part(k.cutting.Hash, piece, spans)
		if err != nil {
			t.Fatal(err)
		}
		if p.held != c.held {
			t.Errorf("%s: %d bytes are taken up, want %d", name, p.held, c.held)
		}
		if _, err := p.Write(data[p.held:]); err != nil || !p.whole() {
			t.Errorf("%s: going on: %v", name, err)
		}
		p.file.Close()
	}
}

// liar gives pieces with one byte changed.
type liar struct{ Library }

func (l liar) Open(hash, piece string) (*Blob, error) {
	b, err := l.Library.Open(hash, piece)
	if err != nil || piece != "2" {
		return b, err
	}
	data, err := io.ReadAll(b)
	if err != nil {
		return nil, err
	}
	data[len(data)/2] ^= 1
	return &Blob{io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data))), b.file}, nil
}

// Corrupted bytes of a neighbour are noticed, named and had from somewhere else.
func TestACorruptedPieceIsFetchedElsewhere(t *testing.T) {
	k := newKit(t)
	first, second := k.member("first"), k.member("second")
	if err := first.fetchAll(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.neighbour(first, liar{first.cache}, k.cutting.Pieces)
	before := k.server.Served()[k.cutting.Hash]
	if err := second.fetchAll(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.sameAsFile(second)
	if log := k.log.String(); !strings.Contains(log, "corrupted") || !strings.Contains(log, "piece=2") || !strings.Contains(log, "from=first") {
		t.Errorf("the log does not name piece and sender:\n%s", log)
	}
	sent := k.server.Served()[k.cutting.Hash] - before
	if sent == 0 || sent > k.cutting.piece("2").Bytes {
		t.Errorf("the gateway sent %d bytes, want some of the %d of the piece: what was right is kept", sent, k.cutting.piece("2").Bytes)
	}
}

// When nobody has good bytes, the error says so.
func TestNobodyHasGoodBytes(t *testing.T) {
	k := newKit(t)
	k.server.cfg.Library = liar{k.store}
	m := k.member("first")
	err := m.fetchAll(t.Context(), k)
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "piece 2") {
		t.Errorf("%v, want that piece 2 is corrupted", err)
	}
	k.server.cfg.Library = k.store
	if err := m.fetchAll(t.Context(), k); err != nil {
		t.Errorf("once the gateway's file is right again: %v", err)
	}
}

// A neighbour that cannot be reached costs a moment, no more.
func TestANeighbourThatIsGone(t *testing.T) {
	k := newKit(t)
	k.holders["1"] = []Holder{{"gone", []string{"127.0.0.1:1"}}}
	m := k.member("first")
	if err := m.fetchAll(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.sameAsFile(m)
}

// A piece that decays on the node's disk is fetched again.
func TestAPieceThatDecays(t *testing.T) {
	k := newKit(t)
	m := k.member("first")
	if err := m.fetchAll(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.cache.path(k.cutting.Hash, "3"), []byte("decayed"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := OpenCache(m.cache.Dir(), k.logger()) // the node's next start
	if err != nil {
		t.Fatal(err)
	}
	lacking, err := again.Lacking(k.cutting.Hash, k.cutting.Pieces, 0, 3)
	if err != nil || len(lacking) != 1 || lacking[0].Name != "3" {
		t.Errorf("lacking %v %v, want piece 3", lacking, err)
	}
	if again.Has(k.cutting.Hash, "3") {
		t.Error("the decayed piece is still given to others")
	}
	if log := k.log.String(); !strings.Contains(log, "piece 3 is corrupted") {
		t.Errorf("the log does not name it:\n%s", log)
	}
}

// smallDisk has room for some bytes.
type smallDisk struct {
	partFile
	left *int64
}

func (d smallDisk) Write(b []byte) (int, error) {
	n := min(int64(len(b)), *d.left)
	*d.left -= n
	k, err := d.partFile.Write(b[:n])
	if err == nil && n < int64(len(b)) {
		err = syscall.ENOSPC
	}
	return k, err
}

// A full disk is said so, loses nothing, and goes on when there is room.
func TestAFullDisk(t *testing.T) {
	k := newKit(t)
	m := k.member("first")
	create := m.cache.create
	left := k.cutting.total() / 2
	m.cache.create = func(path string) (partFile, error) {
		f, err := create(path)
		return smallDisk{f, &left}, err
	}
	err := m.fetchAll(t.Context(), k)
	if !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), m.cache.Dir()) || !strings.Contains(err.Error(), "bytes more") {
		t.Fatalf("%v, want that the disk is full, where, and by how much", err)
	}
	before := k.server.Served()[k.cutting.Hash]
	left = 1 << 40
	if err := m.fetchAll(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	k.sameAsFile(m)
	if all := k.server.Served()[k.cutting.Hash]; all-before > k.cutting.total()-k.cutting.total()/2 {
		t.Errorf("%d bytes came after there was room, though half was there", all-before)
	}
}

// The rate is kept, whatever the sender could do.
func TestTheRateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, err := OpenCache(t.TempDir(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, 40*chunk)
		spans := []Span{{Name: "t", Piece: "7", Bytes: int64(len(data)), Sum: sumOfBytes(data)}}
		p, err := cache.part(strings.Repeat("a", 64), control.Piece{Name: "7", Bytes: int64(len(data))}, spans)
		if err != nil {
			t.Fatal(err)
		}
		f := NewFetcher(FetcherConfig{Cache: cache, Rate: 10 * chunk})
		began := time.Now()
		if err := (&job{Fetcher: f}).pour(context.Background(), bytes.NewReader(data), p, Progress{}, func() {}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began).Round(time.Millisecond); took != 3900*time.Millisecond {
			t.Errorf("40 chunks at 10 a second, one in advance, took %s, want 3.9s", took)
		}
		p.file.Close()
	})
}
