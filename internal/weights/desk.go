package weights

import (
	"slices"
	"sync"
	"time"
)

// A Question is what a node asks the gateway: which of these pieces may it take
// next, and from whom.
type Question struct {
	Pieces []string `json:"pieces"` // in the order in which the node would like them
	// Avoid names, by piece, who gave corrupted bytes or could not be reached:
	// nodes, and "" for the gateway.
	Avoid map[string][]string `json:"avoid,omitempty"`
	// Then are pieces that it would like after all of these.
	Then []string `json:"then,omitempty"`
	// Most is how many pieces it wants to be told of at once; 0: 1.
	Most int `json:"most,omitempty"`
}

// avoidGateway rules the gateway out for every piece.
func (q *Question) avoidGateway() {
	all := map[string][]string{}
	for _, p := range slices.Concat(q.Pieces, q.Then) {
		all[p] = append(slices.Clone(q.Avoid[p]), "")
	}
	q.Avoid = all
}

// An Assignment is the answer. Without a piece, the node asks again after Wait,
// or, when that is 0, there is nobody left to ask.
type Assignment struct {
	Piece     string        `json:"piece,omitempty"`
	Node      string        `json:"node,omitempty"`      // the neighbour that has it; "": the gateway
	Addresses []string      `json:"addresses,omitempty"` // of the neighbour, host:port
	Wait      time.Duration `json:"wait,omitempty"`      // nanoseconds
	// More are further pieces that it may take after this one.
	More []Assignment `json:"more,omitempty"`
}

// A Holder is a node that has a piece and can be reached.
type Holder struct {
	Node      string
	Addresses []string // host:port
}

// A Desk sends nodes to each other, and to the gateway one at a time per piece.
// The zero value is ready.
type Desk struct {
	mu struct {
		sync.Mutex
		claims map[pieceKey]claim
		sent   map[string]int // assignments by neighbour: the least asked comes first
	}
}

// claim is a node's turn to take a piece from the gateway.
type claim struct {
	node  string
	until time.Time
}

// Assign answers a node's question about a model. holders says who has a piece.
func (d *Desk) Assign(node, hash string, q Question, holders func(piece string) []Holder) Assignment {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.claims == nil {
		d.mu.claims, d.mu.sent = map[pieceKey]claim{}, map[string]int{}
	}
	first := d.assignLocked(node, hash, q, holders)
	q.Pieces = append(slices.Clone(q.Pieces), q.Then...)
	for last := first; last.Piece != "" && len(first.More) < min(q.Most, mostLeads)-1; {
		q.Pieces = slices.DeleteFunc(slices.Clone(q.Pieces), func(p string) bool { return p == last.Piece })
		if last = d.assignLocked(node, hash, q, holders); last.Piece != "" {
			first.More = append(first.More, last)
		}
	}
	return first
}

func (d *Desk) assignLocked(node, hash string, q Question, holders func(piece string) []Holder) Assignment {
	now, wait := time.Now(), time.Duration(0)
	for _, piece := range q.Pieces {
		key, have := pieceKey{hash, piece}, holders(piece)
		if h, ok := d.neighbourLocked(node, have, q.Avoid[piece]); ok {
			d.mu.sent[h.Node]++
			return Assignment{Piece: piece, Node: h.Node, Addresses: h.Addresses}
		}
		if slices.Contains(q.Avoid[piece], "") {
			continue
		}
		c, taken := d.mu.claims[key]
		done := slices.ContainsFunc(have, func(h Holder) bool { return h.Node == c.node })
		if taken && c.node != node && !done && now.Before(c.until) {
			wait = askAgain
			continue
		}
		d.mu.claims[key] = claim{node, now.Add(claimTime)}
		return Assignment{Piece: piece}
	}
	return Assignment{Wait: wait}
}

// neighbourLocked picks the holder that was sent the fewest others.
func (d *Desk) neighbourLocked(node string, have []Holder, avoid []string) (best Holder, ok bool) {
	for _, h := range have {
		if h.Node == node || slices.Contains(avoid, h.Node) || len(h.Addresses) == 0 {
			continue
		}
		if !ok || d.mu.sent[h.Node] < d.mu.sent[best.Node] {
			best, ok = h, true
		}
	}
	return best, ok
}

// flows notes that a node is taking a piece from the gateway right now.
func (d *Desk) flows(node, hash, piece string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, now := pieceKey{hash, piece}, time.Now()
	if c, ok := d.mu.claims[key]; ok && c.node == node {
		d.mu.claims[key] = claim{node, now.Add(claimTime)}
	}
	for k, c := range d.mu.claims { // those that nobody asks for any more
		if now.After(c.until) {
			delete(d.mu.claims, k)
		}
	}
}
