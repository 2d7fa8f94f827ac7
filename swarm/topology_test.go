package swarm

import (
	"errors"
	"strings"
	"testing"
)

const goodTopology = `{
 "note": "top",
 "models": [{"id":"m","layers":2,"layer_bytes":["1KiB",2048],"embedding_bytes":10,"head_bytes":"1kB","kv_bytes":1,"context_tokens":4,"copies":1,"priority":3,"note":{"deep":["note"]}},
            {"id":"e","layers":1,"layer_bytes":5,"expert":true,"fallback_for":"m"}],
 "nodes": [{"id":"a","memory_bytes":"6GiB","score":2.5,"latency_ms":1.5,"endpoints":["127.0.0.1:1"],"note":"n"},
           {"id":"b","memory":4096}],
 "joiners": [{"id":"c","memory_bytes":1}]
}`

func TestDecodeTopology(t *testing.T) {
	top, err := DecodeTopology([]byte(goodTopology))
	if err != nil {
		t.Fatal(err)
	}
	if m := top.Models[0]; m.LayerBytes[0] != 1024 || m.LayerBytes[1] != 2048 || m.HeadBytes != 1000 || m.Priority != 3 {
		t.Errorf("%+v", m)
	}
	if top.Nodes[0].MemoryBytes != 6<<30 || top.Nodes[1].MemoryBytes != 4096 || top.Nodes[0].Endpoints[0] != "127.0.0.1:1" {
		t.Errorf("%+v", top.Nodes)
	}
	if len(top.Base()) != 1 || len(top.Experts()) != 1 || len(top.Joiners) != 1 {
		t.Errorf("%+v", top)
	}
}

func TestDecodeTopologyRefuses(t *testing.T) {
	replace := func(old, new string) string {
		s := strings.Replace(goodTopology, old, new, 1)
		if s == goodTopology {
			t.Fatalf("nothing to replace: %s", old)
		}
		return s
	}
	for _, c := range []struct{ name, text, want string }{
		{"not JSON", "{", "not JSON"},
		{"not an object", "[]", "is not a JSON object"},
		{"unknown key at the top", replace(`"models"`, `"modles"`), `topology: unknown key "modles"`},
		{"unknown key of a node", replace(`"score"`, `"scroe"`), `nodes[0] : unknown key "scroe"`},
		{"unknown key of a model", replace(`"kv_bytes"`, `"kvbytes"`), `unknown key "kvbytes"`},
		{"keys are case-sensitive", replace(`"score"`, `"Score"`), `unknown key "Score"`},
		{"key twice", replace(`"score":2.5`, `"score":2.5,"score":1`), `key "score" is given twice`},
		{"duplicate node", replace(`"id":"b"`, `"id":"a"`), `node "a" is given twice`},
		{"joiner with a node's id", replace(`"id":"c"`, `"id":"a"`), `node "a" is given twice`},
		{"duplicate model", replace(`"id":"e","layers":1,"layer_bytes":5,"expert":true,"fallback_for":"m"`, `"id":"m","layers":1,"layer_bytes":5`), `model "m" is given twice`},
		{"no nodes", replace(`"nodes"`, `"joiners2"`), "unknown key"},
		{"empty nodes", `{"models":[{"id":"m","layers":1,"layer_bytes":1}],"nodes":[]}`, "no node profiles"},
		{"empty models", `{"models":[],"nodes":[{"id":"a","memory":1}]}`, "no models"},
		{"negative memory", replace(`"memory":4096`, `"memory":-4096`), "is negative"},
		{"negative memory as text", replace(`"6GiB"`, `"-6GiB"`), "is negative"},
		{"memory twice", replace(`"memory":4096`, `"memory":4096,"memory_bytes":1`), "give one"},
		{"memory missing", replace(`,"memory":4096`, ``), `nodes[1] "b": memory_bytes is missing`},
		{"memory null", replace(`"memory":4096`, `"memory":null`), "memory is null"},
		{"memory too large", replace(`"6GiB"`, `"99999999999TiB"`), "too large"},
		{"memory in furlongs", replace(`"6GiB"`, `"6 furlongs"`), `size "6 furlongs"`},
		{"half a byte", replace(`4096`, `0.5`), `size "0.5"`},
		{"negative score", replace(`2.5`, `-2.5`), "score is negative"},
		{"infinite latency", replace(`"latency_ms":1.5`, `"latency_ms":1e999`), "latency_ms is infinite"},
		{"zero layers", replace(`"layers":1`, `"layers":0`), `model "e": 0 layers`},
		{"wrong number of sizes", replace(`["1KiB",2048]`, `["1KiB",1,1]`), "layer_bytes has 3 entries"},
		{"sizes missing", replace(`"layer_bytes":5,`, ``), "layer_bytes is missing"},
		{"layers as text", replace(`"layers":1`, `"layers":"one"`), "layers is a string"},
		{"unknown fallback", replace(`"fallback_for":"m"`, `"fallback_for":"x"`), `fallback for "x"`},
		{"a node that is no object", replace(`{"id":"c","memory_bytes":1}`, `7`), "joiners[0]: is not a JSON object"},
		{"a node without an id", replace(`"id":"c",`, ``), "a node has no id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			top, err := DecodeTopology([]byte(c.text))
			want := strings.Replace(c.want, "nodes[0] :", "nodes[0]:", 1)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Fatalf("got %v, want %q", err, want)
			}
			if strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), ErrInvalid.Error()) != 1 {
				t.Errorf("not one clear line: %q", err)
			}
			if len(top.Models)+len(top.Nodes)+len(top.Joiners) > 0 {
				t.Error("something was returned with the error")
			}
		})
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "6GiB": 6 << 30, "1.5 GB": 1_500_000_000, "512M": 512 << 20, "2k": -1, "1TiB": 1 << 40,
		"": -1, "GiB": -1, "1e3": 1000, "NaN": -1, "inf GiB": -1, "-1": -1, "9223372036854775807": 1<<63 - 1, "9223372036854775808B": -1,
	} {
		got, err := ParseBytes(text)
		if want < 0 && !errors.Is(err, ErrInvalid) || want >= 0 && (err != nil || got != want) {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for bytes, want := range map[int64]string{0: "0B", 1023: "1023B", 1 << 10: "1KiB", 6 << 30: "6GiB", 1398101: "1.33MiB"} {
		if got := FormatBytes(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}

// Whatever is decoded is in order, can be planned without a panic, and the
// plan is sound.
func FuzzDecodeTopology(f *testing.F) {
	f.Add([]byte(goodTopology))
	f.Add([]byte(`{"models":[{"id":"m","layers":3,"layer_bytes":["9007199254740992",0,1]}],"nodes":[{"id":"a","memory":"8388607TiB"}]}`))
	f.Add([]byte(`{"nodes":[{"id":"a","memory":-1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		top, err := DecodeTopology(data)
		if err != nil {
			return
		}
		if err := top.Validate(); err != nil {
			t.Fatalf("decoded and not in order: %v", err)
		}
		for _, m := range top.Models {
			if m.Layers > 200 || m.Copies > 20 {
				return // planning time is not what is tried here
			}
		}
		if len(top.Nodes) > 50 {
			return
		}
		p, err := Planner{}.Plan(top.Nodes, top.Models, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Sound(); err != nil {
			t.Fatalf("%v\n%s", err, dump(p))
		}
	})
}

func FuzzParseScript(f *testing.F) {
	f.Add("kill a\nrequest m prompt=3 layers=1-2\nload a 0.5 3 # busy")
	f.Fuzz(func(t *testing.T, text string) {
		commands, err := ParseScript(text)
		if err != nil {
			return
		}
		for _, c := range commands {
			again, err := ParseScript(c.String())
			if err != nil || len(again) != 1 || again[0].String() != c.String() {
				t.Fatalf("%q reads as %v, %v", c, again, err)
			}
		}
	})
}
