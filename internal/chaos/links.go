package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"hecate/pool/faultproxy"
)

// linkVerbs are the commands that a link understands, as scripts write them
// before the node's name. All but partition and heal are faultproxy's.
var linkVerbs = []string{"delay", "loss", "throttle", "drop", "partition", "reset", "refuse", "heal"}

// LinkCommand is what is done to the link of one node: what a script writes, but
// without the node's name.
//
//	delay 200ms [jitter 50ms]  every byte comes later, each way
//	loss 0.05                  a packet in twenty is late by a retransmission, each way
//	throttle 64KiB             so much per second, each way and connection
//	drop                       what is sent vanishes, though connections stand and can be made
//	partition                  the same, and no connection can be made: a pulled cable
//	reset                      every connection is aborted now
//	refuse                     new connections are refused
//	heal                       all of that ends
type LinkCommand struct {
	text  string
	cut   bool // nobody gets through to connect
	proxy faultproxy.Command
}

func (c LinkCommand) String() string { return c.text }

// ParseLink reads a command.
func ParseLink(text string) (LinkCommand, error) {
	words := strings.Fields(text)
	c := LinkCommand{text: strings.Join(words, " ")}
	if len(words) == 0 || !slices.Contains(linkVerbs, words[0]) {
		return c, fmt.Errorf("a link knows %s", strings.Join(linkVerbs, ", "))
	}
	told := c.text
	switch words[0] {
	case "heal":
		told = strings.Replace(told, "heal", "pass", 1)
	case "partition":
		told = strings.Replace(told, "partition", "drop", 1)
		c.cut = true
	}
	if c.cut && len(words) > 1 || words[0] == "heal" && len(words) > 1 {
		return c, fmt.Errorf("%s takes no more words", words[0])
	}
	var err error
	c.proxy, err = faultproxy.ParseCommand(told)
	return c, err
}

// Links are the ways from a gateway to the data ports of its nodes, each through
// a proxy that can be told to fail. A gateway that nobody may hurt has none.
type Links struct {
	nodeAt func(addr string) string
	dialer net.Dialer

	mu     sync.Mutex
	ways   map[string]*way  // by the address of the data port
	nodes  map[string]*bend // what stands for a node, whatever port it has
	closed bool
}

// way is one data port behind its proxy.
type way struct {
	node  string
	proxy *faultproxy.Proxy
}

// bend is what is wrong with the link of a node now.
type bend struct {
	fault   faultproxy.Fault
	refuses bool
	cut     chan struct{} // closed when the partition ends; nil: there is none
}

func (b *bend) bent() bool { return b.refuses || b.cut != nil || b.fault != faultproxy.Fault{} }

// NewLinks makes links. nodeAt names the node that listens at an address, "" when
// nobody knows. Close ends them.
func NewLinks(nodeAt func(addr string) string) *Links {
	return &Links{nodeAt: nodeAt, dialer: net.Dialer{KeepAlive: -1}, ways: map[string]*way{}, nodes: map[string]*bend{}}
}

// Dial connects to a data port through its proxy; pool.Config.Dial fits.
func (l *Links) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	for {
		w, cut, err := l.way(addr)
		if err != nil {
			return nil, err
		}
		if cut == nil {
			return l.dialer.DialContext(ctx, "tcp", w.proxy.Addr())
		}
		select {
		case <-cut:
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to %s, which is cut off: %w", addr, context.Cause(ctx))
		}
	}
}

// way finds or makes the proxy of an address, and says whether it is cut off.
func (l *Links) way(addr string) (*way, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, net.ErrClosed
	}
	w := l.ways[addr]
	if w == nil {
		w = &way{node: l.nodeAt(addr)}
		b := l.bendLocked(w.node)
		var err error
		if w.proxy, err = faultproxy.Listen("127.0.0.1:0", addr, faultproxy.Options{Fault: b.fault}); err != nil {
			return nil, nil, err
		}
		if err := w.proxy.Refuse(b.refuses); err != nil {
			return nil, nil, errors.Join(err, w.proxy.Close())
		}
		l.retireLocked(w.node)
		l.ways[addr] = w
	}
	return w, l.bendLocked(w.node).cut, nil
}

func (l *Links) bendLocked(node string) *bend {
	b := l.nodes[node]
	if b == nil {
		b = &bend{}
		l.nodes[node] = b
	}
	return b
}

// retireLocked ends proxies of ports that a node had before it was started anew.
func (l *Links) retireLocked(node string) {
	for addr, w := range l.ways {
		if w.node == node && node != "" && w.proxy.Stats().Open == 0 {
			_ = w.proxy.Close()
			delete(l.ways, addr)
		}
	}
}

// Do changes the link of a node. What lasts stays when the node is started anew.
func (l *Links) Do(ctx context.Context, node string, c LinkCommand) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, found := l.bendLocked(node), false
	for _, w := range l.ways {
		if w.node != node {
			continue
		}
		if err := w.proxy.Do(ctx, c.proxy); err != nil {
			return err
		}
		b.fault, found = w.proxy.Fault(), true
	}
	if !found {
		return fmt.Errorf("there is no connection to a node %s whose link could be changed", node)
	}
	switch {
	case c.text == "heal":
		b.refuses = false
		if b.cut != nil {
			close(b.cut)
			b.cut = nil
		}
	case c.text == "refuse":
		b.refuses = true
	case c.cut && b.cut == nil:
		b.cut = make(chan struct{})
	}
	return nil
}

// Tell is Do with a command as it is written.
func (l *Links) Tell(ctx context.Context, node, command string) error {
	c, err := ParseLink(command)
	if err != nil {
		return err
	}
	return l.Do(ctx, node, c)
}

// Bent says that the link of a node was told to fail and is not healed.
func (l *Links) Bent(node string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.nodes[node]
	return b != nil && b.bent()
}

// Close ends all proxies and the connections through them.
func (l *Links) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var faults []error
	for _, w := range l.ways {
		faults = append(faults, w.proxy.Close())
	}
	clear(l.ways)
	return errors.Join(faults...)
}
