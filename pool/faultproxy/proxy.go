package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy forwards connections to one target. All methods are safe for concurrent use.
type Proxy struct {
	target string
	addr   string
	seed   uint64

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // every goroutine of the proxy

	// state is read per chunk without a lock; mu serialises its replacement.
	state atomic.Pointer[state]

	bytes    [2]atomic.Uint64 // forwarded, by way
	accepted atomic.Uint64
	failed   atomic.Uint64

	mu       sync.Mutex
	listener net.Listener // nil while refusing
	links    map[*link]struct{}
	closed   bool
}

// state is one setting of the proxy; changed is closed when the next one replaces it.
type state struct {
	fault   Fault
	changed chan struct{}
}

// Options tune a proxy; the zero value is useful.
type Options struct {
	Seed  uint64 // of jitter and loss
	Fault Fault  // from the beginning
}

// Listen starts a proxy at addr (host:port, port 0 chooses one) for connections to
// target. Close ends it.
func Listen(addr, target string, opt Options) (*Proxy, error) {
	if err := opt.Fault.validate(); err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	p := &Proxy{target: target, addr: l.Addr().String(), seed: opt.Seed, links: map[*link]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.state.Store(&state{fault: opt.Fault, changed: make(chan struct{})})
	p.serveLocked(l)
	return p, nil
}

// Addr returns the address that the proxy listens on, also while it refuses.
func (p *Proxy) Addr() string { return p.addr }

// Fault returns what the proxy does now.
func (p *Proxy) Fault() Fault { return p.state.Load().fault }

// Set replaces what the proxy does to its connections, living ones included.
// Bytes that already wait are judged anew, but for the delay they were given.
func (p *Proxy) Set(f Fault) error {
	return p.update(func(old *Fault) { *old = f })
}

func (p *Proxy) update(change func(*Fault)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.state.Load()
	f := old.fault
	change(&f)
	if err := f.validate(); err != nil {
		return fmt.Errorf("faultproxy: %w", err)
	}
	p.state.Store(&state{fault: f, changed: make(chan struct{})})
	close(old.changed)
	return nil
}

func (f Fault) validate() error {
	var faults []error
	if err := f.Up.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("up: %w", err))
	}
	if err := f.Down.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("down: %w", err))
	}
	return errors.Join(faults...)
}

// Refuse stops listening, or listens again. Living connections go on.
func (p *Proxy) Refuse(on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed || on == (p.listener == nil):
		return nil
	case on:
		l := p.listener
		p.listener = nil
		if err := l.Close(); err != nil {
			return fmt.Errorf("faultproxy: refusing: %w", err)
		}
		return nil
	default:
		l, err := net.Listen("tcp", p.addr)
		if err != nil {
			return fmt.Errorf("faultproxy: listening again: %w", err)
		}
		p.serveLocked(l)
		return nil
	}
}

// Reset aborts every living connection on both sides and returns how many.
func (p *Proxy) Reset() int {
	links := p.snapshot()
	for _, l := range links {
		l.reset()
	}
	return len(links)
}

// HalfClose ends one way of every living connection and returns how many: the
// receiver reads the end of the stream, while the other way goes on.
func (p *Proxy) HalfClose(w Way) int {
	links := p.snapshot()
	for _, l := range links {
		l.halfClose(w)
	}
	return len(links)
}

// Stats are counters since the start.
type Stats struct {
	Open      int    `json:"open"`
	Accepted  uint64 `json:"accepted"`
	Failed    uint64 `json:"failed"` // the target could not be reached
	BytesUp   uint64 `json:"bytes_up"`
	BytesDown uint64 `json:"bytes_down"`
}

// Stats returns the counters now.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	open := len(p.links)
	p.mu.Unlock()
	return Stats{
		Open: open, Accepted: p.accepted.Load(), Failed: p.failed.Load(),
		BytesUp: p.bytes[Up].Load(), BytesDown: p.bytes[Down].Load(),
	}
}

// Close aborts everything and waits for the proxy's goroutines. It is idempotent.
func (p *Proxy) Close() error {
	p.mu.Lock()
	l := p.listener
	p.listener, p.closed = nil, true
	p.mu.Unlock()
	p.cancel()
	var err error
	if l != nil {
		err = l.Close()
	}
	p.Reset()
	p.wg.Wait()
	return err
}

func (p *Proxy) snapshot() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

// serveLocked accepts on l until it is closed.
func (p *Proxy) serveLocked(l net.Listener) {
	p.listener = l
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				// One connection's failure, or no descriptors left: pause, then go on.
				select {
				case <-time.After(acceptPause):
				case <-p.ctx.Done():
				}
				continue
			}
			n := p.accepted.Add(1)
			p.wg.Go(func() { p.forward(c.(*net.TCPConn), n) })
		}
	})
}

// forward joins one accepted connection with the target and returns when both are closed.
func (p *Proxy) forward(client *net.TCPConn, n uint64) {
	d := net.Dialer{Timeout: dialTimeout}
	target, err := d.DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		p.failed.Add(1)
		abort(client)
		return
	}
	for _, c := range []*net.TCPConn{client, target.(*net.TCPConn)} {
		_ = c.SetReadBuffer(kernelBuffer) // a larger buffer is no fault of ours
	}
	l := &link{proxy: p, client: client, target: target.(*net.TCPConn), done: make(chan struct{})}
	if !p.add(l) {
		l.reset()
		return
	}
	defer p.remove(l)
	var both sync.WaitGroup
	for _, w := range []Way{Up, Down} {
		s := newStream(l, w, rand.New(rand.NewPCG(p.seed, 2*n+uint64(w))))
		both.Go(s.receive)
		both.Go(s.send)
	}
	both.Wait()
	l.close()
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.links[l] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
