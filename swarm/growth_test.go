package swarm

import (
	"slices"
	"testing"
)

// onlySmall is a policy of somebody else: nothing that takes more than half of
// the free bytes.
type onlySmall struct{}

func (onlySmall) Choose(room *Room) []string {
	var free int64
	for _, b := range room.Free() {
		free += b
	}
	var out []string
	for _, m := range room.Catalogue() {
		if m.TotalBytes() <= free/2 && room.Place(m.ID) {
			out = append(out, m.ID)
		}
	}
	return out
}

func TestGrowthPolicies(t *testing.T) {
	nodes := []NodeProfile{{ID: "a", MemoryBytes: 20, Score: 1}, {ID: "b", MemoryBytes: 20, Score: 1}}
	catalogue := []ModelSpec{
		{ID: "small", Layers: 2, LayerBytes: []int64{1}, Priority: 1},
		{ID: "huge", Layers: 2, LayerBytes: []int64{50}, Priority: 9},
		{ID: "large", Layers: 3, LayerBytes: []int64{4}, Priority: 5},
	}
	for _, c := range []struct {
		name   string
		policy GrowthPolicy
		want   []string
	}{
		{"default", nil, []string{"large", "small"}},
		{"somebody else's", onlySmall{}, []string{"small"}},
		{"none", growthFunc(func(*Room) []string { return nil }), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSwarm(t, nodes, Config{Catalogue: catalogue, Growth: c.policy})
			var got []string
			for _, m := range s.Plan().Models {
				if m.Expert {
					got = append(got, m.ID)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("placed %v, want %v", got, c.want)
			}
			wantState(t, s, Healthy)
		})
	}
}

func TestRoomIsUnchangedByWhatDoesNotFit(t *testing.T) {
	s := newSwarm(t, []NodeProfile{{ID: "a", MemoryBytes: 20, Score: 1}}, Config{
		Pipelines: 1,
		Catalogue: []ModelSpec{{ID: "big", Layers: 1, LayerBytes: []int64{50}}, {ID: "fits", Layers: 1, LayerBytes: []int64{8}}},
		Growth: growthFunc(func(r *Room) []string {
			before := r.Free()["a"]
			if r.Place("big") || r.Place("nobody") || r.Free()["a"] != before || before != 8 {
				t.Errorf("room changed or wrong: %v", r.Free())
			}
			if !r.Place("fits") || r.Place("fits") || r.Free()["a"] != 0 {
				t.Errorf("room after one expert: %v", r.Free())
			}
			return []string{"fits"}
		}),
	})
	if len(s.Plan().PipelinesOf("fits")) != 1 {
		t.Error("not placed")
	}
}
