package swarm

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A Topology is a swarm on paper: models, nodes, and nodes that may join
// later. Its file is JSON,
//
//	{"models":[...], "nodes":[...], "joiners":[...]}
//
// with the fields of ModelSpec and NodeProfile. Every size may be a number of
// bytes or a text such as "6GiB"; "memory" is another name of memory_bytes; a
// single layer_bytes holds for all layers. A "note" may stand in any object
// and is ignored. Any other unknown key is an error.
type Topology struct {
	Models  []ModelSpec   `json:"models"`
	Nodes   []NodeProfile `json:"nodes"`
	Joiners []NodeProfile `json:"joiners,omitempty"`
}

// DecodeTopology reads a topology file and checks it. The error names the
// place and the key; nothing is returned with it.
func DecodeTopology(data []byte) (Topology, error) {
	var t Topology
	if !json.Valid(data) {
		var anything any
		return t, fmt.Errorf("topology is not JSON: %w: %w", json.Unmarshal(data, &anything), ErrInvalid)
	}
	top, err := openObject("topology", data, "models", "nodes", "joiners")
	if err != nil {
		return t, err
	}
	if t.Models, err = readList(top, "models", readModel); err != nil {
		return Topology{}, err
	}
	if t.Nodes, err = readList(top, "nodes", readProfile); err != nil {
		return Topology{}, err
	}
	if t.Joiners, err = readList(top, "joiners", readProfile); err != nil {
		return Topology{}, err
	}
	if err := t.Validate(); err != nil {
		return Topology{}, err
	}
	return t, nil
}

// Validate checks that there are nodes and models, that each is in order, and
// that no id is used twice among nodes and joiners or among models.
func (t Topology) Validate() error {
	if len(t.Models) == 0 {
		return fmt.Errorf("topology has no models: %w", ErrInvalid)
	}
	if err := checkModels(t.Models); err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	if err := checkFallbacks(t.Models); err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	if err := checkProfiles(t.Nodes); err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	if err := checkProfiles(slices.Concat(t.Nodes, t.Joiners)); err != nil {
		return fmt.Errorf("topology, joiners included: %w", err)
	}
	return nil
}

// Base are the models of a topology that are no experts; Experts the others.
func (t Topology) Base() []ModelSpec {
	return slices.DeleteFunc(slices.Clone(t.Models), func(m ModelSpec) bool { return m.Expert })
}

// Experts are the models that are placed only in what the base models leave.
func (t Topology) Experts() []ModelSpec {
	return slices.DeleteFunc(slices.Clone(t.Models), func(m ModelSpec) bool { return !m.Expert })
}

// An object is one JSON object of a topology, with the place where it stands.
type object struct {
	place  string
	fields map[string]rawField
}

// openObject splits an object and refuses keys that are not known, and keys
// that are given twice. "note" is always known.
func openObject(place string, data []byte, known ...string) (object, error) {
	fields, err := objectFields(data)
	if err != nil {
		return object{}, fmt.Errorf("%s: %w: %w", place, err, ErrInvalid)
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		switch {
		case key == "note":
		case !slices.Contains(known, key):
			return object{}, fmt.Errorf("%s: unknown key %q: %w", place, key, ErrInvalid)
		case fields[key].times > 1:
			return object{}, fmt.Errorf("%s: key %q is given twice: %w", place, key, ErrInvalid)
		}
	}
	return object{place, fields}, nil
}

func (o object) has(key string) bool { return o.fields[key].times > 0 }

// read decodes one key, if it is there, into a value.
func (o object) read(key string, into any) error {
	if !o.has(key) {
		return nil
	}
	if string(o.fields[key].value) == "null" {
		return fmt.Errorf("%s: %s is null: %w", o.place, key, ErrInvalid)
	}
	err := json.Unmarshal(o.fields[key].value, into)
	switch {
	case errors.Is(err, ErrInvalid):
		return fmt.Errorf("%s: %s: %w", o.place, key, err)
	case err != nil:
		return fmt.Errorf("%s: %s %s: %w", o.place, key, problemText(err), ErrInvalid)
	}
	return nil
}

// readAll decodes several keys and stops at the first that is wrong.
func (o object) readAll(targets []target) error {
	for _, t := range targets {
		if err := o.read(t.key, t.into); err != nil {
			return err
		}
	}
	return nil
}

type target struct {
	key  string
	into any
}

func readList[T any](o object, key string, read func(object) (T, error)) ([]T, error) {
	var raw []json.RawMessage
	if err := o.read(key, &raw); err != nil {
		return nil, err
	}
	var out []T
	for i, r := range raw {
		v, err := read(object{place: fmt.Sprintf("%s[%d]", key, i), fields: map[string]rawField{"": {value: r}}})
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// named is an object that is called by its id from now on, where it has one.
func (o object) named(known ...string) (object, error) {
	in, err := openObject(o.place, o.fields[""].value, known...)
	if err != nil {
		return in, err
	}
	var id string
	if err := in.read("id", &id); err != nil {
		return in, err
	}
	if id != "" {
		in.place = fmt.Sprintf("%s %q", o.place, id)
	}
	return in, nil
}

func readProfile(raw object) (NodeProfile, error) {
	var p NodeProfile
	o, err := raw.named("id", "memory_bytes", "memory", "score", "latency_ms", "endpoints")
	if err != nil {
		return p, err
	}
	memory, score, latency := size(0), Reading{}, Reading{}
	err = o.readAll([]target{
		{"id", &p.ID}, {"memory_bytes", &memory}, {"memory", &memory},
		{"score", &score}, {"latency_ms", &latency}, {"endpoints", &p.Endpoints},
	})
	switch {
	case err != nil:
		return p, err
	case o.has("memory") && o.has("memory_bytes"):
		return p, fmt.Errorf("%s: memory and memory_bytes are the same thing; give one: %w", o.place, ErrInvalid)
	case !o.has("memory") && !o.has("memory_bytes"):
		return p, fmt.Errorf("%s: memory_bytes is missing: %w", o.place, ErrInvalid)
	}
	p.MemoryBytes, p.Score, p.LatencyMS = int64(memory), score.Value, latency.Value
	return p, p.Validate()
}

func readModel(raw object) (ModelSpec, error) {
	var m ModelSpec
	o, err := raw.named("id", "layers", "layer_bytes", "embedding_bytes", "head_bytes", "kv_bytes", "context_tokens",
		"copies", "priority", "expert", "fallback_for")
	if err != nil {
		return m, err
	}
	var layer layerSizes
	var embedding, head, kv size
	err = o.readAll([]target{
		{"id", &m.ID}, {"layers", &m.Layers}, {"layer_bytes", &layer}, {"embedding_bytes", &embedding},
		{"head_bytes", &head}, {"kv_bytes", &kv}, {"context_tokens", &m.ContextTokens}, {"copies", &m.Copies},
		{"priority", &m.Priority}, {"expert", &m.Expert}, {"fallback_for", &m.FallbackFor},
	})
	if err != nil {
		return m, err
	}
	if !o.has("layer_bytes") {
		return m, fmt.Errorf("%s: layer_bytes is missing: %w", o.place, ErrInvalid)
	}
	m.LayerBytes = layer
	m.EmbeddingBytes, m.HeadBytes, m.KVBytes = int64(embedding), int64(head), int64(kv)
	return m, m.Validate()
}

// layerSizes decodes from one size or a list of them.
type layerSizes []int64

func (l *layerSizes) UnmarshalJSON(data []byte) error {
	var list []size
	if len(data) > 0 && data[0] == '[' {
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
	} else {
		var one size
		if err := one.UnmarshalJSON(data); err != nil {
			return err
		}
		list = []size{one}
	}
	*l = make(layerSizes, len(list))
	for i, s := range list {
		(*l)[i] = int64(s)
	}
	return nil
}
