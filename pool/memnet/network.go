package memnet

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"
)

// Network joins hosts. All methods are safe for concurrent use.
type Network struct {
	seed uint64

	// mu guards everything in the network, connections included: sections are
	// short, and one lock makes a fault and its effect one step.
	mu        sync.Mutex
	listeners map[string]*Listener
	conns     map[*Conn]struct{} // every end that its owner has not closed
	links     map[pair]Link
	silent    map[pair]bool
	refusing  map[string]bool
	slow      map[string]int // bytes per second that a host's readers get
	pipes     map[pair]*pipe
	rng       *rand.Rand // for what belongs to no connection yet
	made      uint64     // connections so far
	port      int        // last ephemeral port
	closed    bool
}

// New returns an empty network whose randomness follows from seed.
func New(seed uint64) *Network {
	return &Network{
		seed:      seed,
		listeners: map[string]*Listener{},
		conns:     map[*Conn]struct{}{},
		links:     map[pair]Link{},
		silent:    map[pair]bool{},
		refusing:  map[string]bool{},
		slow:      map[string]int{},
		pipes:     map[pair]*pipe{},
		rng:       rand.New(rand.NewPCG(seed, dialStream)),
		port:      firstEphemeral,
	}
}

const (
	firstEphemeral = 49152
	dialStream     = 1 << 63 // of the seed; connections count from 0
)

// SetLink sets one direction; an empty host stands for every host, and the most
// special rule counts. It applies to what is written from now on.
func (n *Network) SetLink(from, to string, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[pair{from, to}] = l
	n.wakeLocked() // the buffer may have grown
}

// SetLinks sets both directions between a and b.
func (n *Network) SetLinks(a, b string, l Link) {
	n.SetLink(a, b, l)
	n.SetLink(b, a, l)
}

// Silence makes the direction a black hole, or ends that: nothing written from
// now on arrives, nor what is on its way. An empty host stands for every host.
func (n *Network) Silence(from, to string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if on {
		n.silent[pair{from, to}] = true
	} else {
		delete(n.silent, pair{from, to})
	}
	now := time.Now()
	for c := range n.conns {
		c.out.silenceLocked(n.silentLocked(c.out.dir), now)
		// The other end may be closed already and no longer be in the map.
		c.in.silenceLocked(n.silentLocked(c.in.dir), now)
	}
}

// SilenceHost makes a host hear nothing and say nothing, or ends that.
func (n *Network) SilenceHost(host string, on bool) {
	n.Silence(host, "", on)
	n.Silence("", host, on)
}

// Refuse makes a host refuse new connections although it listens, or ends that.
func (n *Network) Refuse(host string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refusing[host] = on
}

// SlowReader lets the readers of a host have only so many bytes per second on each
// connection; 0 ends that.
func (n *Network) SlowReader(host string, bytesPerSecond int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow[host] = bytesPerSecond
	n.wakeLocked()
}

// Cut resets every connection between a and b, in both ends at once, and returns
// how many there were. An empty host stands for every host.
func (n *Network) Cut(a, b string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	cut := 0
	for c := range n.conns {
		if c.in.reset == nil && (between(c.out.dir, a, b) || between(c.out.dir, b, a)) {
			c.resetLocked()
			cut++
		}
	}
	return cut
}

func between(p pair, from, to string) bool {
	return (from == "" || p.from == from) && (to == "" || p.to == to)
}

// Conns returns how many ends of connections are open: 0 when a test has cleaned up.
func (n *Network) Conns() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

// Close closes all listeners and connections; later dials and listens fail.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, l := range n.listeners {
		l.closeLocked()
	}
	for c := range n.conns {
		c.closeLocked()
	}
	return nil
}

func (n *Network) linkLocked(p pair) Link {
	for _, m := range p.matches() {
		if l, ok := n.links[m]; ok {
			return l
		}
	}
	return Link{}
}

func (n *Network) silentLocked(p pair) bool {
	for _, m := range p.matches() {
		if n.silent[m] {
			return true
		}
	}
	return false
}

func (n *Network) pipeLocked(p pair) *pipe {
	shared := n.pipes[p]
	if shared == nil {
		shared = &pipe{}
		n.pipes[p] = shared
	}
	return shared
}

// wakeLocked lets everybody who waits look again.
func (n *Network) wakeLocked() {
	for c := range n.conns {
		c.in.cond.Broadcast()
		c.out.cond.Broadcast()
	}
}

func (n *Network) ephemeralLocked(host string) Addr {
	n.port++
	if n.port > 65535 {
		n.port = firstEphemeral
	}
	return Addr(net.JoinHostPort(host, strconv.Itoa(n.port)))
}

// Addr is an address host:port.
type Addr string

// Network returns "tcp", which is what memnet imitates.
func (Addr) Network() string { return "tcp" }

func (a Addr) String() string { return string(a) }

func (a Addr) host() string {
	host, _, err := net.SplitHostPort(string(a))
	if err != nil {
		return string(a)
	}
	return host
}
