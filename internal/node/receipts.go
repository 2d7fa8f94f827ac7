package node

import (
	"cmp"
	"slices"
	"sync"

	"hecate/internal/control"
	"hecate/swarm"
)

// receipts are how many bytes a node was sent, by whom and for which layer. The
// zero value is ready.
type receipts struct {
	mu    sync.Mutex
	bytes map[receipt]int64
}

// receipt names a flow of bytes. What belongs to no single layer counts for the
// layer that was the first to need it.
type receipt struct {
	hash  string // of the model's content
	from  string // a node; "" the gateway
	layer int
}

func (r *receipts) add(of receipt, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes == nil {
		r.bytes = map[receipt]int64{}
	}
	r.bytes[of] += n
}

// list sums them up by model, sender and run of layers.
func (r *receipts) list() (out []control.Received) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := make([]receipt, 0, len(r.bytes))
	for k := range r.bytes {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b receipt) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.from, b.from), a.layer-b.layer)
	})
	for i, k := range keys {
		if i == 0 || keys[i-1].hash != k.hash || keys[i-1].from != k.from {
			out = append(out, control.Received{Hash: k.hash, From: k.from})
		}
		runs := &out[len(out)-1].Runs
		if last := len(*runs) - 1; last >= 0 && (*runs)[last].Layers.Last == k.layer-1 {
			(*runs)[last].Layers.Last = k.layer
			(*runs)[last].Bytes += r.bytes[k]
			continue
		}
		*runs = append(*runs, control.ReceivedRun{Layers: swarm.Layers(k.layer, k.layer), Bytes: r.bytes[k]})
	}
	return out
}

// keep forgets models that are not wanted any more.
func (r *receipts) keep(wanted func(hash string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.bytes {
		if !wanted(k.hash) {
			delete(r.bytes, k)
		}
	}
}
