package control

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hecate/swarm"
)

var someKey = strings.Repeat("ab", 32)

func someNode(id string) *NodeRecord {
	return &NodeRecord{
		ID: id, Key: someKey, Incarnation: 3, Instance: "x", Desired: DesiredActive, Host: "h", PID: 7,
		Joined:  time.Unix(1e9, 0).UTC(),
		Profile: swarm.NodeProfile{ID: id, MemoryBytes: 1 << 30, Score: 5, LatencyMS: 1, Endpoints: []string{"127.0.0.1:7000"}},
	}
}

func someModel(id string) *ModelRecord {
	return &ModelRecord{
		ID: id, Hash: someKey, Size: 100, ContextLength: 512, Created: time.Unix(1e9, 0).UTC(),
		Spec: swarm.ModelSpec{ID: id, Layers: 6, LayerBytes: []int64{1 << 20}, KVBytes: 64, ContextTokens: 512},
	}
}

func someHealth(node string) *Health {
	return &Health{
		Node: node, Incarnation: 1, Instance: "i", Sequence: 1, Cells: 8, FreeCells: 4,
		State: swarm.NodeState{ID: node, Load: swarm.Measured(0.5)},
		Held:  []HeldFragment{{Model: "m", Layers: swarm.LayerRange{First: 0, Last: 3}, State: HoldServing}},
	}
}

func TestDocumentsKeepTheirContent(t *testing.T) {
	plan := &PlanDocument{Generation: 2, Epoch: 9, Hash: "h", Plan: &swarm.Plan{Generation: 1, Hash: "h"}, Desired: map[string]Desired{"a": DesiredPaused}}
	for _, pair := range []struct{ in, out document }{
		{someNode("mini"), new(NodeRecord)}, {someModel("m"), new(ModelRecord)}, {someHealth("mini"), new(Health)}, {plan, new(PlanDocument)},
	} {
		data, err := Encode(pair.in)
		if err != nil {
			t.Fatal(err)
		}
		if err := Decode(data, pair.out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(pair.in, pair.out); diff != "" {
			t.Errorf("%s changed on the way:\n%s", pair.in.kind(), diff)
		}
	}
}

func TestBadDocumentsAreRefusedWithTheReason(t *testing.T) {
	node := func(change func(*NodeRecord)) document { n := someNode("mini"); change(n); return n }
	model := func(change func(*ModelRecord)) document { m := someModel("m"); change(m); return m }
	health := func(change func(*Health)) document { h := someHealth("mini"); change(h); return h }
	for want, d := range map[string]document{
		"start with a letter":        node(func(n *NodeRecord) { n.ID = "../etc" }),
		"key fingerprint":            node(func(n *NodeRecord) { n.Key = "short" }),
		"desired state":              node(func(n *NodeRecord) { n.Desired = "asleep" }),
		"memory of 0":                node(func(n *NodeRecord) { n.Profile.MemoryBytes = 0 }),
		"score NaN":                  node(func(n *NodeRecord) { n.Profile.Score = math.NaN() }),
		"not ip:port":                node(func(n *NodeRecord) { n.Profile.Endpoints = []string{"mini.lan:80"} }),
		"no endpoint":                node(func(n *NodeRecord) { n.Profile.Endpoints = nil }),
		"profile of":                 node(func(n *NodeRecord) { n.Profile.ID = "other" }),
		"0 layers":                   model(func(m *ModelRecord) { m.Spec.Layers = 0 }),
		"layer sizes":                model(func(m *ModelRecord) { m.Spec.LayerBytes = []int64{1, 2} }),
		"spec of":                    model(func(m *ModelRecord) { m.Spec.ID = "n" }),
		"context length 0":           model(func(m *ModelRecord) { m.ContextLength = 0 }),
		"room for 0":                 model(func(m *ModelRecord) { m.Spec.ContextTokens = 0 }),
		"incarnation 0":              health(func(h *Health) { h.Incarnation = 0 }),
		"sequence 0":                 health(func(h *Health) { h.Sequence = 0 }),
		"9 of 8 cells":               health(func(h *Health) { h.FreeCells = 9 }),
		"layers 3 to 1":              health(func(h *Health) { h.Held[0].Layers = swarm.LayerRange{First: 3, Last: 1} }),
		"holds the state of":         health(func(h *Health) { h.State.ID = "other" }),
		"is no latency":              health(func(h *Health) { h.LastLatencyMS = math.Inf(1) }),
		"no plan in it":              &PlanDocument{Generation: 1, Epoch: 1},
		"generation 0":               &PlanDocument{Epoch: 1, Plan: &swarm.Plan{}},
		"desired \"active\"":         &PlanDocument{Generation: 1, Epoch: 1, Plan: &swarm.Plan{}, Desired: map[string]Desired{"a": DesiredActive}},
		"name of 0 characters, want": &Command{},
	} {
		if _, err := Encode(d); !errors.Is(err, ErrBadDocument) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestDecodeRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, text := range map[string]string{
		"empty": ``, "not JSON": `{`, "another kind": `[]`, "no version": `{"id":"a"}`,
		"newer": `{"version":2}`, "wrong type": `{"version":1,"id":5}`,
	} {
		if err := Decode([]byte(text), new(NodeRecord)); !errors.Is(err, ErrBadDocument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	data, err := Encode(someNode("mini"))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	fields["invented_later"] = 1
	if data, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	if err := Decode(data, new(NodeRecord)); err != nil {
		t.Errorf("a field of a later program: %v", err)
	}
}

func TestAFaultInANumberIsNoDeath(t *testing.T) {
	h := someHealth("mini")
	h.FreeCells, h.LastLatencyMS = -1, math.NaN()
	if _, err := Encode(h); err == nil {
		t.Fatal("the report is not faulty")
	}
	if _, err := Encode(h.essence()); err != nil || len(h.essence().Held) != 1 {
		t.Errorf("its essence: %v", err)
	}
	h.Held[0].Layers.First = -1
	if _, err := Encode(h.essence()); err == nil {
		t.Error("a range that is none was accepted")
	}
	if _, err := Encode(h.existence()); err != nil {
		t.Errorf("its existence: %v", err)
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"a", "mini", "mini.lan", "9", "a_b-c.d", strings.Repeat("x", 63)} {
		if err := ValidateNodeName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", ".", "..", "...", "a/b", `a\b`, "a b", "a\n", "a\x00", "*", ">", "a>", "ä", "-a", "_", "a:b", strings.Repeat("x", 64),
	} {
		if err := ValidateNodeName(name); !errors.Is(err, ErrBadName) {
			t.Errorf("%q was accepted (%v)", name, err)
		}
	}
	if err := ValidateModelName("qwen2.5:7b-q4_K@x"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "..", "a/b", "org/model", ":x", "a\tb"} {
		if err := ValidateModelName(name); !errors.Is(err, ErrBadName) {
			t.Errorf("model %q was accepted (%v)", name, err)
		}
	}
}

func FuzzEscapeElement(f *testing.F) {
	for _, s := range []string{"", "a", "a.b", "=2E", "*>", "ß", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := EscapeElement(s)
		if strings.ContainsAny(e, ".*> \t\r\n/") {
			t.Fatalf("%q became %q, which is no single element", s, e)
		}
		if back, err := UnescapeElement(e); err != nil || back != s {
			t.Fatalf("%q became %q became %q (%v)", s, e, back, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, d := range []document{someNode("a"), someModel("m"), someHealth("a")} {
		data, err := Encode(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, d := range []document{new(NodeRecord), new(ModelRecord), new(Health), new(PlanDocument), new(Command)} {
			if Decode(data, d) != nil {
				continue
			}
			again, err := Encode(d)
			if err != nil {
				t.Fatalf("%s was read, and cannot be written: %v", d.kind(), err)
			}
			if err := Decode(again, d); err != nil {
				t.Fatalf("%s was written, and cannot be read: %v", d.kind(), err)
			}
		}
	})
}
