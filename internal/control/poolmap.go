package control

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// A DataMap is what the data plane should be connected to: the living nodes
// that hold, or should hold, something.
type DataMap struct {
	// Revision grows with every change of content: A, B, A are three.
	Revision uint64
	Hash     string // of Groups
	Groups   map[string]DataGroup
}

// A DataGroup is one node's way in, by address family.
type DataGroup struct {
	Reverse bool     // the node connects to the gateway; no addresses then
	IP4     []string // ip:port, sorted
	IP6     []string
}

// A DataMapper turns plans and membership into data maps. The zero value is
// ready; it is not safe for concurrent use.
type DataMapper struct {
	// Unreachable says that a member's endpoints were tried in vain: it connects
	// to the gateway instead. nil: none is.
	Unreachable func(*Member) bool
	current     DataMap
}

// Map returns the desired map, and whether it differs from the one before. A
// node is in it when it lives (suspects do), was not removed, and the plan
// gives it layers or it still holds some. Without a plan the map is empty.
func (dm *DataMapper) Map(doc *PlanDocument, view *View) (DataMap, bool) {
	groups := map[string]DataGroup{}
	planned := plannedNodes(doc)
	for i := range view.Members {
		m := &view.Members[i]
		if doc == nil || !m.Status.Living() || m.Record == nil || m.Record.Desired == DesiredRemoved {
			continue
		}
		if planned[m.ID] || m.Health != nil && len(m.Health.Held) > 0 {
			groups[m.ID] = groupOf(m.Record, m.Record.Reverse || dm.Unreachable != nil && dm.Unreachable(m))
		}
	}
	hash := hashGroups(groups)
	if hash == dm.current.Hash {
		return dm.current, false
	}
	dm.current = DataMap{Revision: dm.current.Revision + 1, Hash: hash, Groups: groups}
	return dm.current, true
}

func plannedNodes(doc *PlanDocument) map[string]bool {
	nodes := map[string]bool{}
	if doc == nil {
		return nodes
	}
	for _, n := range doc.Plan.Nodes {
		if len(n.Fragments) > 0 {
			nodes[n.Profile.ID] = true
		}
	}
	return nodes
}

func groupOf(r *NodeRecord, reverse bool) DataGroup {
	if reverse {
		return DataGroup{Reverse: true}
	}
	var g DataGroup
	for _, e := range r.Profile.Endpoints {
		ap, err := netip.ParseAddrPort(e)
		if err != nil {
			continue // refused at the edge; a zone ("%eth0") may be left
		}
		if ap.Addr().Unmap().Is4() {
			g.IP4 = append(g.IP4, e)
		} else {
			g.IP6 = append(g.IP6, e)
		}
	}
	slices.Sort(g.IP4)
	slices.Sort(g.IP6)
	g.IP4, g.IP6 = slices.Compact(g.IP4), slices.Compact(g.IP6)
	return g
}

func hashGroups(groups map[string]DataGroup) string {
	h := sha256.New()
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintf(h, "%q %v %q %q\n", id, groups[id].Reverse, groups[id].IP4, groups[id].IP6)
	}
	return hex.EncodeToString(h.Sum(nil))
}
