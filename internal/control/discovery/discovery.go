// Package discovery finds a swarm's gateways on the local network by multicast
// DNS. It is a convenience: what it finds is no more than an address to try,
// the fingerprint of the swarm's authority decides whether it is believed.
// Explicit addresses always work without it.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/mdns"
)

const (
	service   = "_hecate._tcp"
	swarmText = "swarm="
	// rescan is how often the interfaces are looked at: a laptop moves.
	rescan = 20 * time.Second
	// maxFound bounds what a noisy network can make us try.
	maxFound = 16
	// tagDigits of the fingerprint name a swarm on the network.
	tagDigits = 16
)

// ErrNoMulticast: no interface can send to a group.
var ErrNoMulticast = errors.New("no network interface has multicast")

// Tag names a swarm in announcements: the first digits of its authority's
// fingerprint.
func Tag(fingerprint [32]byte) string { return fmt.Sprintf("%x", fingerprint)[:tagDigits] }

// An Announcement is what a gateway tells its network.
type Announcement struct {
	Gateway string // the gateway's name
	Tag     string // its swarm's
	Port    int    // of the enrolment endpoint
	Only    net.IP // the one address it listens on; unspecified or nil: all
}

// Announce answers queries on every interface that has multicast, and follows
// their coming and going, until ctx ends.
func Announce(ctx context.Context, a Announcement, logger *slog.Logger) {
	running := map[string]*mdns.Server{}
	defer func() {
		for _, s := range running {
			_ = s.Shutdown() // it only closes sockets, and never fails
		}
	}()
	for {
		present := map[string]bool{}
		for _, i := range Interfaces() {
			key := fmt.Sprint(i.Name, i.Addresses)
			present[key] = true
			if running[key] != nil || len(a.at(i)) == 0 {
				continue
			}
			s, err := a.serve(i)
			if err != nil {
				logger.Debug("no announcement", "interface", i.Name, "error", err)
				continue
			}
			running[key] = s
		}
		for key, s := range running {
			if !present[key] {
				_ = s.Shutdown()
				delete(running, key)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(rescan):
		}
	}
}

// at is under which of an interface's addresses the gateway can be reached.
func (a Announcement) at(i Interface) []net.IP {
	if a.Only == nil || a.Only.IsUnspecified() {
		return i.Addresses
	}
	if slices.ContainsFunc(i.Addresses, a.Only.Equal) {
		return []net.IP{a.Only}
	}
	return nil
}

func (a Announcement) serve(i Interface) (*mdns.Server, error) {
	host, err := os.Hostname()
	if err != nil {
		host = a.Gateway
	}
	host, _, _ = strings.Cut(host, ".")
	zone, err := mdns.NewMDNSService(a.Gateway+" "+a.Tag, service, "", host+".local.", a.Port, a.at(i), []string{swarmText + a.Tag})
	if err != nil {
		return nil, fmt.Errorf("announcing on %s: %w", i.Name, err)
	}
	return mdns.NewServer(&mdns.Config{Zone: zone, Iface: &i.Interface, Logger: silent()})
}

// silent keeps the library from the program's log: it reports every malformed
// packet of every printer.
func silent() *log.Logger { return log.New(io.Discard, "", 0) }

// Find asks every interface for gateways of the tagged swarm and returns
// their addresses, host:port, after the given time.
func Find(ctx context.Context, tag string, wait time.Duration) ([]string, error) {
	interfaces := Interfaces()
	if len(interfaces) == 0 {
		return nil, ErrNoMulticast
	}
	var all collection
	var wg sync.WaitGroup
	for _, i := range interfaces {
		// One family at a time: the library gives up both when one cannot send.
		for _, v6 := range []bool{false, true} {
			if i.has(v6) {
				wg.Go(func() { all.note(i.query(ctx, tag, v6, wait, all.add)) })
			}
		}
	}
	wg.Wait()
	return all.result()
}

// query asks on one interface and family.
func (i Interface) query(ctx context.Context, tag string, v6 bool, wait time.Duration, found func(string)) error {
	// The library goes on writing to entries that it has delivered, so they
	// are read when it has finished; what does not fit it drops.
	entries := make(chan *mdns.ServiceEntry, maxFound)
	err := mdns.QueryContext(ctx, &mdns.QueryParam{
		Service: service, Timeout: wait, Interface: &i.Interface, Entries: entries, Logger: silent(),
		DisableIPv6: !v6, DisableIPv4: v6,
	})
	if err != nil {
		return fmt.Errorf("asking on %s: %w", i.Name, err)
	}
	close(entries)
	for e := range entries {
		if !slices.Contains(e.InfoFields, swarmText+tag) {
			continue
		}
		for _, a := range addressesOf(e, i) {
			found(a)
		}
	}
	return nil
}

func addressesOf(e *mdns.ServiceEntry, i Interface) (out []string) {
	if e.AddrV4 != nil {
		out = append(out, net.JoinHostPort(e.AddrV4.String(), strconv.Itoa(e.Port)))
	}
	if e.AddrV6IPAddr != nil {
		host := e.AddrV6IPAddr.IP.String()
		if e.AddrV6IPAddr.IP.IsLinkLocalUnicast() {
			host += "%" + i.Name
		}
		out = append(out, net.JoinHostPort(host, strconv.Itoa(e.Port)))
	}
	return out
}

// A collection gathers what several interfaces find.
type collection struct {
	mu       sync.Mutex
	found    []string
	worked   bool // some query was sent
	failures []error
}

func (c *collection) add(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.found, address) && len(c.found) < maxFound {
		c.found = append(c.found, address)
	}
}

func (c *collection) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failures = append(c.failures, err)
		return
	}
	c.worked = true
}

// result is an error only when no interface worked at all.
func (c *collection) result() ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.worked {
		return nil, errors.Join(c.failures...)
	}
	slices.Sort(c.found)
	return c.found, nil
}
