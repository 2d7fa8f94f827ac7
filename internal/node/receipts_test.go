package node

import (
	"reflect"
	"testing"

	"hecate/internal/control"
	"hecate/swarm"
)

// What came is told by sender and run of layers, and forgotten with the model.
func TestReceiptsAreSummedByRuns(t *testing.T) {
	var r receipts
	for layer := range 4 {
		r.add(receipt{"a", "", layer}, 10)
	}
	r.add(receipt{"a", "", 2}, 5)
	r.add(receipt{"a", "first", 4}, 7)
	r.add(receipt{"a", "first", 6}, 8)
	r.add(receipt{"b", "first", 5}, 9)
	want := []control.Received{
		{Hash: "a", Runs: []control.ReceivedRun{{Layers: swarm.Layers(0, 3), Bytes: 45}}},
		{Hash: "a", From: "first", Runs: []control.ReceivedRun{{Layers: swarm.Layers(4, 4), Bytes: 7}, {Layers: swarm.Layers(6, 6), Bytes: 8}}},
		{Hash: "b", From: "first", Runs: []control.ReceivedRun{{Layers: swarm.Layers(5, 5), Bytes: 9}}},
	}
	if got := r.list(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v,\nwant %+v", got, want)
	}
	r.keep(func(hash string) bool { return hash == "b" })
	if got := r.list(); !reflect.DeepEqual(got, want[2:]) {
		t.Errorf("after a model went: %+v, want %+v", got, want[2:])
	}
}
