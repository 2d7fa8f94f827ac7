package swarm

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestNodeStateJSON(t *testing.T) {
	const text = `{"node_id":"mini","latency_ms":6.4,"current_load":0.2,"capacity_score":13,"served_layers":[[7,9]],"alive":true}`
	var n NodeState
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	want := sample("mini", 6.4, 0.2, 13, Layers(7, 9))
	if !reflect.DeepEqual(n, want) {
		t.Errorf("got %+v, want %+v", n, want)
	}
	back, err := json.Marshal(n)
	if err != nil || string(back) != text {
		t.Errorf("written as %s, %v, want %s", back, err, text)
	}
}

func TestNodeStateJSONMissingAndUnknown(t *testing.T) {
	for text, want := range map[string]NodeState{
		`{"node_id":"a"}`: {ID: "a"},
		`{"node_id":"a","latency_ms":null,"alive":null,"note":[1,{"x":2}],"LATENCY_MS":3}`: {ID: "a"},
		`{"node_id":"a","alive":false,"fragments":[{"model":"m","layers":[0,3]}]}`:         {ID: "a", Dead: true, Fragments: []Fragment{{"m", Layers(0, 3)}}},
		`{"node_id":"a","current_load":3.5,"served_layers":[[0,3],[2,5],[0,3]]}`:           {ID: "a", Load: Measured(3.5), Served: []LayerRange{{0, 3}, {2, 5}, {0, 3}}},
	} {
		var n NodeState
		if err := json.Unmarshal([]byte(text), &n); err != nil || !reflect.DeepEqual(n, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, n, err, want)
		}
	}
}

func TestNodeStateJSONRefuses(t *testing.T) {
	for text, says := range map[string][]string{
		`{"node_id":"mini","latency_ms":-1}`:                           {`"mini"`, "latency_ms", "negative"},
		`{"node_id":"mini","current_load":1e999}`:                      {`"mini"`, "current_load", "infinite"},
		`{"node_id":"mini","capacity_score":"NaN"}`:                    {`"mini"`, "capacity_score", "not a number"},
		`{"latency_ms":-2,"node_id":"mini"}`:                           {`"mini"`, "latency_ms"},
		`{"node_id":"mini","latency_ms":1,"latency_ms":2}`:             {`"mini"`, "latency_ms", "twice"},
		`{"node_id":"mini","node_id":"maxi"}`:                          {"node_id", "twice"},
		`{"node_id":"mini","served_layers":[[3,1]]}`:                   {`"mini"`, "served_layers", "inverted"},
		`{"node_id":"mini","served_layers":[[1]]}`:                     {`"mini"`, "served_layers", "[1]"},
		`{"node_id":"mini","served_layers":[[0,99999999]]}`:            {`"mini"`, "served_layers"},
		`{"node_id":"mini","served_layers":[[0,1.5]]}`:                 {`"mini"`, "served_layers"},
		`{"node_id":"mini","fragments":[{"model":"m"}]}`:               {`"mini"`, "fragments"},
		`{"node_id":"mini","fragments":[{"model":"","layers":[0,1]}]}`: {`"mini"`, "fragments"},
		`{"node_id":"mini","alive":"yes"}`:                             {`"mini"`, "alive"},
		`{"node_id":7}`:                                                {"node_id"},
		`{"latency_ms":1}`:                                             {"node_id", "missing"},
		`[1]`:                                                          {"node state"},
		`"mini"`:                                                       {"node state"},
	} {
		var n NodeState
		err := json.Unmarshal([]byte(text), &n)
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %+v, %v, want ErrInvalid", text, n, err)
			continue
		}
		for _, part := range says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", text, err, part)
			}
		}
	}
}

func TestNodeStateIsNotWrittenBroken(t *testing.T) {
	for _, n := range []NodeState{
		{}, sample("a", math.NaN(), 0, 1), sample("a", 1, math.Inf(1), 1), sample("a", 1, 0, -1), sample("a", 1, 0, 1, LayerRange{3, 2}),
	} {
		if data, err := json.Marshal(n); err == nil {
			t.Errorf("%+v was written as %s", n, data)
		}
	}
}

func TestLayerRangeJSON(t *testing.T) {
	for _, bad := range []string{"null", "[]", "[1]", "[1,2,3]", "[1,null]", "[2,1]", "[-1,2]", "[0,65536]", `["0","1"]`, "{}", "[0.0,1]"} {
		r := Layers(7, 8)
		if err := r.UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s was accepted as %v", bad, r)
		}
	}
	data, err := json.Marshal(Layers(3, 9))
	var back LayerRange
	if err != nil || json.Unmarshal(data, &back) != nil || back != Layers(3, 9) {
		t.Errorf("[3,9] is written as %s, %v, read as %v", data, err, back)
	}
}

func TestUnstatedRangeJSON(t *testing.T) {
	if data, err := json.Marshal(Unstated()); err != nil || string(data) != "null" {
		t.Errorf("an unstated range is written as %s, %v, want null", data, err)
	}
}

func TestStageJSON(t *testing.T) {
	for text, want := range map[string]Stage{
		`{"node":"a","layers":[0,0]}`: {"a", Layers(0, 0)},
		`{"node":"a"}`:                {"a", Unstated()},
	} {
		var s Stage
		if err := json.Unmarshal([]byte(text), &s); err != nil || s != want {
			t.Errorf("%s: got %v, %v, want %v", text, s, err, want)
		}
		if back, err := json.Marshal(s); err != nil || string(back) != text {
			t.Errorf("%s is written as %s, %v", text, back, err)
		}
	}
	var s Stage
	if err := json.Unmarshal([]byte(`{"layers":[0,1]}`), &s); err == nil {
		t.Errorf("a stage without a node was accepted: %v", s)
	}
}

func FuzzNodeStateJSON(f *testing.F) {
	for _, s := range []string{
		`{"node_id":"mini","latency_ms":6.4,"current_load":0.2,"capacity_score":13.0,"served_layers":[[7,9]],"alive":true}`,
		`{"node_id":"a","latency_ms":NaN}`, `{"node_id":"a","latency_ms":-0}`, `{"node_id":"a","current_load":1e400}`,
		`{"node_id":"a","fragments":[{"model":"m","layers":[0,3]},{"model":"m","layers":[0,3]}],"fragments":[]}`,
		`{"node_id":"a","served_layers":[[0,18446744073709551616]]}`, `{"node_id":"\ud800","capacity_score":1e-400}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var n, back NodeState
		if json.Unmarshal(data, &n) != nil {
			return
		}
		if err := n.Validate(); err != nil {
			t.Fatalf("%s was accepted: %v", data, err)
		}
		again, err := json.Marshal(n)
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", n, err)
		}
		if err := json.Unmarshal(again, &back); err != nil || !reflect.DeepEqual(n, back) {
			t.Fatalf("%+v was written as %s and read as %+v, %v", n, again, back, err)
		}
	})
}

func FuzzEval(f *testing.F) {
	f.Add("score", []byte(`[{"model":"m","states":[{"node_id":"a","served_layers":[[0,3]]}],"layer_range":[0,3]}]`))
	f.Add("failover", []byte(`[{"model":"m","states":[],"route":["a",{"node":"b"}],"failed":"a","redundancy":{"0":["c"],"1":["b"]}}]`))
	f.Add("failover", []byte(`[{"model":"m","states":[],"route":[{"node":"b","layers":[0,1]}],"failed":"b","redundancy":{"-1":["c"]},"fallback_model":"x"}]`))
	f.Add("swarm", []byte(`[{"model":"m","states":[],"pipelines":[{"pipeline_id":0,"model":"m","stages":[]},{"pipeline_id":0,"model":"m","stages":[{"node":"a"}]}]}]`))
	f.Add("swarm_failover", []byte(`[{"model":"m","states":[],"pipelines":[],"route":[{"node":"a","layers":[0,1]},{"node":"b","layers":[1,2]}],"failed":"a"}]`))
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		out, err := Eval(kind, data)
		if err == nil && !json.Valid(out) {
			t.Fatalf("%s of %s: answer is not JSON: %s", kind, data, out)
		}
	})
}
