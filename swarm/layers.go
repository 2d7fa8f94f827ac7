package swarm

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// unstated is the range of a stage that was given without one. It holds no
// layer; Valid is false for it.
var unstated = LayerRange{First: 0, Last: -1}

// Unstated returns the range that stands for "not given": routes may name
// nodes without saying which layers each runs (see Failover).
func Unstated() LayerRange { return unstated }

// Layers returns the range first..last.
func Layers(first, last int) LayerRange { return LayerRange{First: first, Last: last} }

// Valid reports whether the range holds at least one layer and lies within
// 0..MaxLayer.
func (r LayerRange) Valid() bool {
	return r.First >= 0 && r.First <= r.Last && r.Last <= MaxLayer
}

// Stated reports whether the range was given at all.
func (r LayerRange) Stated() bool { return r != unstated }

// Len is the number of layers in the range, 0 when it is inverted.
func (r LayerRange) Len() int { return max(0, r.Last-r.First+1) }

// Contains reports whether layer lies in the range.
func (r LayerRange) Contains(layer int) bool { return r.First <= layer && layer <= r.Last }

// Covers reports whether every layer of other lies in r.
func (r LayerRange) Covers(other LayerRange) bool {
	return r.First <= other.First && other.Last <= r.Last
}

// Overlaps reports whether the two ranges share a layer.
func (r LayerRange) Overlaps(other LayerRange) bool {
	return r.First <= other.Last && other.First <= r.Last
}

// Clip returns the part of r that lies in window, and whether there is any.
func (r LayerRange) Clip(window LayerRange) (LayerRange, bool) {
	c := LayerRange{First: max(r.First, window.First), Last: min(r.Last, window.Last)}
	return c, c.First <= c.Last
}

// String prints the range as "3-7", a single layer as "3", an unstated one as "-".
func (r LayerRange) String() string {
	switch {
	case !r.Stated():
		return "-"
	case r.First == r.Last:
		return strconv.Itoa(r.First)
	}
	return strconv.Itoa(r.First) + "-" + strconv.Itoa(r.Last)
}

// MarshalJSON writes the pair [first, last], null for an unstated range.
func (r LayerRange) MarshalJSON() ([]byte, error) {
	if !r.Stated() {
		return []byte("null"), nil
	}
	return json.Marshal([2]int{r.First, r.Last})
}

// UnmarshalJSON accepts exactly two whole numbers, first <= last, within
// 0..MaxLayer. Anything else is an error that shows the offending text.
func (r *LayerRange) UnmarshalJSON(data []byte) error {
	var pair []*int
	if err := json.Unmarshal(data, &pair); err != nil || len(pair) != 2 || pair[0] == nil || pair[1] == nil {
		return fmt.Errorf("layer range %s: want a pair of whole numbers [first, last]", clipText(data))
	}
	got := LayerRange{First: *pair[0], Last: *pair[1]}
	switch {
	case got.First > got.Last:
		return fmt.Errorf("layer range %s is inverted", clipText(data))
	case !got.Valid():
		return fmt.Errorf("layer range %s is outside 0..%d", clipText(data), MaxLayer)
	}
	*r = got
	return nil
}

// clipText shortens hostile input for an error text.
func clipText(data []byte) string {
	const limit = 60
	if len(data) > limit {
		return string(data[:limit]) + "..."
	}
	return string(data)
}

type stageJSON struct {
	Node   string      `json:"node"`
	Layers *LayerRange `json:"layers,omitempty"`
}

// MarshalJSON leaves out the layers of a stage that has none stated.
func (s Stage) MarshalJSON() ([]byte, error) {
	out := stageJSON{Node: s.Node}
	if s.Layers.Stated() {
		out.Layers = &s.Layers
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads a stage; missing layers are Unstated, not layer 0.
func (s *Stage) UnmarshalJSON(data []byte) error {
	var in stageJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if in.Node == "" {
		return fmt.Errorf("stage %s names no node", clipText(data))
	}
	*s = Stage{Node: in.Node, Layers: unstated}
	if in.Layers != nil {
		s.Layers = *in.Layers
	}
	return nil
}

// String prints the stage as "mini[4-7]".
func (s Stage) String() string { return s.Node + "[" + s.Layers.String() + "]" }
