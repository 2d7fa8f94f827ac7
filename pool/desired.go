package pool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Family is the address family of an endpoint. Requirement, coverage and
// refill are kept per group and family, so that a broken IPv6 path is seen as
// such and not hidden behind a healthy IPv4 one.
type Family string

// The two families.
const (
	IP4 Family = "ip4"
	IP6 Family = "ip6"
)

// EndpointKind says who opens the connection.
type EndpointKind string

const (
	// Dial is the zero kind: the pool connects to Addr.
	Dial EndpointKind = ""
	// Reverse is a node that cannot accept connections: it connects to the
	// pool (see Pool.ServeReverse) and each such connection becomes a writer
	// of its group. Addr is only a label then.
	Reverse EndpointKind = "reverse"
)

// Endpoint is one address of a group.
type Endpoint struct {
	// Addr is host:port for a dialled endpoint, any label for a reverse one.
	Addr string       `json:"addr"`
	Kind EndpointKind `json:"kind,omitempty"`
}

// Group lists the endpoints of one node by family. A node seen through two
// addresses is one group with two endpoints.
type Group map[Family][]Endpoint

// Map is the desired map: the nodes that membership believes alive. A node
// that was declared dead leaves the map with a new revision, so one dead
// machine never blocks a swap.
type Map struct {
	// Revision is the endpoint revision. It grows with every change; Apply
	// refuses a lower one, and an equal one with other contents. A -> B -> A
	// is three revisions.
	Revision uint64 `json:"revision"`
	// Hash names the contents. Empty: computed from Groups.
	Hash string `json:"hash,omitempty"`
	// Groups is keyed by node id, which is also the identity that the peer's
	// certificate and hello must carry.
	Groups map[string]Group `json:"groups"`
}

// Limits on a desired map; each bounds what one bad map can cost.
const (
	MaxGroups    = 4096 // groups in one map
	MaxEndpoints = 64   // endpoints of one group and family
	MaxNameBytes = 255  // bytes in a group name or an address
)

// GroupOf makes a group of dialled endpoints from host:port addresses, sorted
// into families by the host; a name that is not an address counts as ip4.
func GroupOf(addrs ...string) Group {
	g := Group{}
	for _, a := range addrs {
		g[familyOf(a)] = append(g[familyOf(a)], Endpoint{Addr: a})
	}
	return g
}

func familyOf(addr string) Family {
	if ap, err := netip.ParseAddrPort(addr); err == nil && ap.Addr().Unmap().Is6() {
		return IP6
	}
	return IP4
}

// Validate reports every fault of the map at once.
func (m Map) Validate() error {
	var faults []error
	if len(m.Groups) > MaxGroups {
		faults = append(faults, fmt.Errorf("%d groups, at most %d allowed", len(m.Groups), MaxGroups))
	}
	for _, name := range sortedKeys(m.Groups) {
		faults = append(faults, validateGroup(name, m.Groups[name])...)
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("desired map revision %d: %w", m.Revision, err)
	}
	return nil
}

func validateGroup(name string, g Group) (faults []error) {
	if name == "" || len(name) > MaxNameBytes {
		faults = append(faults, fmt.Errorf("group name %q: need 1..%d bytes", name, MaxNameBytes))
	}
	for family, endpoints := range g {
		if family != IP4 && family != IP6 {
			faults = append(faults, fmt.Errorf("group %q: family %q: need ip4 or ip6", name, family))
		}
		if len(endpoints) > MaxEndpoints {
			faults = append(faults, fmt.Errorf("group %q %s: %d endpoints, at most %d allowed", name, family, len(endpoints), MaxEndpoints))
		}
		faults = append(faults, validateEndpoints(name, family, endpoints)...)
	}
	return faults
}

func validateEndpoints(name string, family Family, endpoints []Endpoint) (faults []error) {
	seen := map[string]bool{}
	for _, e := range endpoints {
		switch {
		case e.Addr == "" || len(e.Addr) > MaxNameBytes:
			faults = append(faults, fmt.Errorf("group %q %s: address %q: need 1..%d bytes", name, family, e.Addr, MaxNameBytes))
		case e.Kind != Dial && e.Kind != Reverse:
			faults = append(faults, fmt.Errorf("group %q %s %s: kind %q: need dial (empty) or reverse", name, family, e.Addr, e.Kind))
		case seen[e.Addr]:
			faults = append(faults, fmt.Errorf("group %q %s: endpoint %s listed twice", name, family, e.Addr))
		}
		seen[e.Addr] = true
	}
	return faults
}

// contentHash is independent of map order and of the revision.
func (m Map) contentHash() string {
	h := sha256.New()
	for _, name := range sortedKeys(m.Groups) {
		for _, family := range sortedKeys(m.Groups[name]) {
			endpoints := slices.Clone(m.Groups[name][family])
			slices.SortFunc(endpoints, func(a, b Endpoint) int { return strings.Compare(a.Addr, b.Addr) })
			for _, e := range endpoints {
				fmt.Fprintf(h, "%q %q %q %q\n", name, family, e.Addr, e.Kind)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// clone protects the pool from a caller that goes on editing its map.
func (m Map) clone() Map {
	out := Map{Revision: m.Revision, Hash: m.Hash, Groups: make(map[string]Group, len(m.Groups))}
	for name, g := range m.Groups {
		copied := make(Group, len(g))
		for family, endpoints := range g {
			copied[family] = slices.Clone(endpoints)
		}
		out.Groups[name] = copied
	}
	if out.Hash == "" {
		out.Hash = out.contentHash()
	}
	return out
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
