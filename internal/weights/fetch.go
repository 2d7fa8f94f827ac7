package weights

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"hecate/internal/control"
)

// ErrDiskFull is matched when a piece found no room on disk.
var ErrDiskFull = errors.New("the disk is full")

// FetcherConfig says from where, and how fast.
type FetcherConfig struct {
	Cache *Cache
	// Gateways are addresses, host:port, of gateways of the swarm.
	Gateways func() []string
	// Gateway and Node make clients that trust only the gateways of the swarm,
	// or only one of its nodes.
	Gateway *http.Client
	Node    func(name string) *http.Client
	// Rate bounds what comes in, in bytes per second; 0: no bound.
	Rate int64
	// Busy says that answers run here, which transfers must not delay; nil: never.
	Busy func() bool
	// Stored is told each time that a piece has come: others may have it now.
	Stored func()
	Log    *slog.Logger
}

// A Fetcher brings pieces into a Cache, one at a time.
type Fetcher struct {
	cfg   FetcherConfig
	limit *rate.Limiter
	afar  afar
	leads leads

	answered atomic.Pointer[string] // the gateway that did last
	mu       struct {
		sync.Mutex
		nodes map[string]*http.Client // by name, with the connections that wait for the next piece
	}
}

// NewFetcher returns a fetcher.
func NewFetcher(cfg FetcherConfig) *Fetcher {
	f := &Fetcher{cfg: cfg, limit: limiter(cfg.Rate)}
	f.mu.nodes = map[string]*http.Client{}
	return f
}

// Close ends the connections that wait for a next piece. The fetcher stays usable.
func (f *Fetcher) Close() {
	f.cfg.Gateway.CloseIdleConnections()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.mu.nodes {
		c.CloseIdleConnections()
	}
}

// client reaches who has a piece; "": a gateway.
func (f *Fetcher) client(node string) *http.Client {
	if node == "" {
		return f.cfg.Gateway
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.mu.nodes[node]
	if c == nil {
		c = f.cfg.Node(node)
		f.mu.nodes[node] = c
	}
	return c
}

// Progress is how far a Fetch is: bytes of the pieces it was asked for, and what
// came since the last time it was told.
type Progress struct {
	Done, Total int64
	From        string // who sent the newest bytes: a node, "" for the gateway
	Came        int64  // how many these were, also those that are thrown away again
}

// Fetch brings pieces of one model's content and returns when they are there,
// verified. then are pieces that the next Fetch will want: the way to them is asked
// for in the same question. What arrived before an error stays, and the next Fetch goes on from
// there. Errors: ErrDiskFull with the shortfall; *CorruptError when nobody has
// good bytes; what the last try failed with otherwise.
func (f *Fetcher) Fetch(ctx context.Context, hash string, pieces, then []control.Piece, progress func(Progress)) error {
	j := &job{Fetcher: f, hash: hash, left: slices.Clone(pieces), then: then, avoid: map[string][]string{}, progress: progress}
	for _, p := range pieces {
		j.state.Total += p.Bytes
	}
	for len(j.left) > 0 {
		if err := j.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// job is one Fetch.
type job struct {
	*Fetcher
	hash     string
	left     []control.Piece
	then     []control.Piece     // of the next one
	avoid    map[string][]string // by piece: who did not give it
	last     error               // why somebody is avoided
	state    Progress
	progress func(Progress)
}

// step asks where to go, and goes there.
func (j *job) step(ctx context.Context) error {
	a, gateway, err := j.lead(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(j.left, func(p control.Piece) bool { return p.Name == a.Piece })
	if i < 0 {
		if a.Wait <= 0 {
			return errors.Join(errors.New("nobody is left to fetch from"), j.last)
		}
		return sleep(ctx, min(a.Wait, time.Second))
	}
	piece, before := j.left[i], j.state.Done
	err = j.take(ctx, piece, a, gateway)
	switch {
	case err == nil:
		j.state.Done = before + piece.Bytes
		j.left = slices.Delete(j.left, i, i+1)
		if j.cfg.Stored != nil {
			j.cfg.Stored()
		}
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrDiskFull):
		return err
	}
	j.cfg.Log.Warn("a piece did not come whole; trying elsewhere, or again", "piece", piece.Name, "model", short(j.hash), "from", source(a), "because", err)
	j.afar.note(a.Node, err, time.Now())
	j.leads.drop(a.Node)
	j.avoid[piece.Name] = append(j.avoid[piece.Name], a.Node)
	j.last, j.state.Done = fmt.Errorf("piece %s from %s: %w", piece.Name, source(a), err), before
	return nil
}

// lead says what to take next, and from whom: what the last answer said, or a new
// one. The gateway is the one that answered.
func (j *job) lead(ctx context.Context) (Assignment, string, error) {
	if l, ok := j.leads.take(j.hash, j.left, time.Now()); ok {
		return l.Assignment, l.gateway, nil
	}
	q := Question{Pieces: namesOf(j.left), Then: namesOf(j.then[:min(len(j.then), mostLeads)]), Most: mostLeads}
	q.Avoid = j.afar.avoid(slices.Concat(q.Pieces, q.Then), j.avoid, time.Now())
	a, gateway, err := j.ask(ctx, q)
	if err == nil {
		j.leads.keep(j.hash, gateway, a.More, time.Now())
	}
	return a, gateway, err
}

func namesOf(pieces []control.Piece) (out []string) {
	for _, p := range pieces {
		out = append(out, p.Name)
	}
	return out
}

func short(hash string) string { return hash[:min(12, len(hash))] }

func source(a Assignment) string {
	if a.Node == "" {
		return "the gateway"
	}
	return a.Node
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// ask tries each gateway, and says which answered.
func (j *job) ask(ctx context.Context, q Question) (a Assignment, gateway string, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return a, "", fmt.Errorf("ask where to fetch: %w", err)
	}
	err = errors.New("no gateway is known yet")
	var absent *absentError
	for _, gateway = range j.gateways() {
		if a, err = j.askOne(ctx, gateway, body); err == nil {
			j.answered.Store(&gateway)
			return a, gateway, nil
		}
		errors.As(err, &absent) // what one that lives says counts more than that others are dead
	}
	if absent != nil {
		return a, "", absent
	}
	return a, "", fmt.Errorf("ask a gateway where to fetch: %w", err)
}

// gateways are those that are known, the one that answered last first: others may
// be dead, which takes time to find out each time.
func (f *Fetcher) gateways() []string {
	list := slices.Clone(f.cfg.Gateways())
	if good := f.answered.Load(); good != nil {
		if i := slices.Index(list, *good); i > 0 {
			list = slices.Insert(slices.Delete(list, i, i+1), 0, *good)
		}
	}
	return list
}

// absentError is a gateway's word that nobody alive has what was asked for.
type absentError struct{ text string }

func (e *absentError) Error() string { return e.text }

// askWithin bounds one question.
const askWithin = 10 * time.Second

func (j *job) askOne(ctx context.Context, gateway string, body []byte) (a Assignment, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+gateway+PathPrefix+j.hash+"/next", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	resp, err := j.cfg.Gateway.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // what there is of an explanation
		return a, &absentError{strings.TrimSpace(string(text))}
	}
	if resp.StatusCode != http.StatusOK {
		return a, refused(resp)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxQuestion)) // to its end: the connection is used again
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a)
}

func refused(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // what there is of an explanation
	return fmt.Errorf("it answered %s: %s", resp.Status, strings.TrimSpace(string(text)))
}

// take fetches one piece from where the gateway said.
func (j *job) take(ctx context.Context, piece control.Piece, a Assignment, gateway string) error {
	spans := []Span{{Name: piece.Name, Piece: piece.Name, Bytes: piece.Bytes, Sum: piece.Sum}}
	if piece.Name != control.PieceManifest {
		m, err := j.cfg.Cache.Manifest(j.hash)
		if err != nil {
			return err
		}
		spans = m.spans(piece.Name)
	}
	p, err := j.cfg.Cache.part(j.hash, piece, spans)
	if err != nil {
		return j.full(err, piece, 0)
	}
	client, addresses := j.client(a.Node), a.Addresses
	if a.Node == "" {
		addresses = []string{gateway}
	}
	base := j.state.Done
	for _, address := range addresses {
		if p.whole() {
			break
		}
		if err = j.download(ctx, client, address, p, Progress{Done: base, From: a.Node}); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err == nil && !p.whole() {
		err = fmt.Errorf("it ended after %d of %d bytes", p.held, p.size)
	}
	if err != nil {
		_ = p.file.Close() // the first failure counts
		return j.full(err, piece, p.held)
	}
	return j.full(j.cfg.Cache.finish(pieceKey{j.hash, piece.Name}, p), piece, p.held)
}

// full words an error that means that the disk is.
func (j *job) full(err error, piece control.Piece, held int64) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: piece %s needs %d bytes more in %s; make room there, it goes on by itself: %w", ErrDiskFull, piece.Name, piece.Bytes-held, j.cfg.Cache.Dir(), err)
	}
	return err
}

// maxCuts is how often in a row one sender may break off without a new byte.
const maxCuts = 3

// download takes the rest of a piece, however often the connection is cut.
func (j *job) download(ctx context.Context, client *http.Client, address string, p *part, base Progress) error {
	for cuts := 0; ; {
		before := p.held
		err := j.stream(ctx, client, address, p, base)
		var corrupt *CorruptError
		if err == nil || ctx.Err() != nil || errors.As(err, &corrupt) || !p.transient(err) {
			return err
		}
		if cuts++; p.held > before {
			cuts = 0
			j.cfg.Log.Info("a transfer was cut and goes on", "piece", p.name, "from", address, "at", p.held, "of", p.size, "because", err)
		}
		if cuts == maxCuts {
			return err
		}
		if err := sleep(ctx, askAgain); err != nil {
			return err
		}
	}
}

// transient says that trying the same sender again may help.
func (p *part) transient(err error) bool {
	var write *writeError
	return !errors.As(err, &write)
}

// writeError is one of our own disk.
type writeError struct{ error }

func (w *writeError) Unwrap() error { return w.error }

// stream asks for the rest and writes what comes. It gives up on a sender that is
// silent for too long.
func (j *job) stream(ctx context.Context, client *http.Client, address string, p *part, base Progress) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := time.AfterFunc(stalled, cancel)
	defer watch.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+PathPrefix+j.hash+"/"+p.name, nil)
	if err != nil {
		return err
	}
	if j.cfg.Busy != nil && j.cfg.Busy() {
		req.Header.Set(yieldHeader, "1")
	}
	req.Header.Set("Range", "bytes="+strconv.FormatInt(p.held, 10)+"-")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusPartialContent {
		return refused(resp)
	}
	if want := fmt.Sprintf("bytes %d-%d/%d", p.held, p.size-1, p.size); resp.Header.Get("Content-Range") != want {
		return fmt.Errorf("it sends %q, asked for was %q", resp.Header.Get("Content-Range"), want)
	}
	return j.pour(ctx, resp.Body, p, base, func() { watch.Reset(stalled) })
}

var buffers = sync.Pool{New: func() any { return new([chunk]byte) }}

// pour writes what comes. base is where the piece began, and who sends it.
func (j *job) pour(ctx context.Context, body io.Reader, p *part, base Progress, alive func()) error {
	buf := buffers.Get().(*[chunk]byte)
	defer buffers.Put(buf)
	for !p.whole() {
		if j.limit != nil {
			if err := j.limit.WaitN(ctx, chunk); err != nil {
				return err
			}
		}
		alive()
		n, err := io.ReadFull(body, buf[:min(chunk, p.size-p.held)])
		_, werr := p.Write(buf[:n])
		if j.progress != nil {
			j.progress(Progress{base.Done + p.held, j.state.Total, base.From, int64(n)})
		}
		if werr != nil {
			return &writeError{werr}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
