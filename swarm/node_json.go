package swarm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

type nodeJSON struct {
	ID        string       `json:"node_id"`
	LatencyMS Reading      `json:"latency_ms,omitzero"`
	Load      Reading      `json:"current_load,omitzero"`
	Score     Reading      `json:"capacity_score,omitzero"`
	Served    []LayerRange `json:"served_layers,omitzero"`
	Fragments []Fragment   `json:"fragments,omitzero"`
	Alive     bool         `json:"alive"`
}

// MarshalJSON writes a number, or null when unmeasured.
func (r Reading) MarshalJSON() ([]byte, error) {
	if !r.Known {
		return []byte("null"), nil
	}
	if !finite(r.Value) {
		return nil, fmt.Errorf("reading %v %s: %w", r.Value, problemOf(r.Value), ErrInvalid)
	}
	return json.Marshal(r.Value)
}

// UnmarshalJSON reads a number from 0 up; null is unmeasured.
func (r *Reading) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*r = Reading{}
		return nil
	}
	v, err := strconv.ParseFloat(string(data), 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return errors.New("is not a number")
	case !finite(v):
		return errors.New(problemOf(v))
	}
	*r = Measured(v)
	return nil
}

// MarshalJSON writes the state without its unmeasured fields; a state that
// Validate refuses is not written.
func (n NodeState) MarshalJSON() ([]byte, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	return json.Marshal(nodeJSON{n.ID, n.LatencyMS, n.Load, n.Score, n.Served, n.Fragments, !n.Dead})
}

// UnmarshalJSON reads a node's sample. Unknown fields are ignored, missing and
// null numbers are unmeasured, a missing "alive" means alive. A number that is
// negative, infinite or not one, a malformed range, and a field given twice
// are refused with a FieldError that names node and field.
func (n *NodeState) UnmarshalJSON(data []byte) error {
	fields, err := objectFields(data)
	if err != nil {
		return &FieldError{Field: "node state", Problem: err.Error()}
	}
	in := nodeJSON{Alive: true}
	if err := decodeField(fields, "", "node_id", &in.ID); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		into any
	}{
		{"latency_ms", &in.LatencyMS}, {"current_load", &in.Load}, {"capacity_score", &in.Score},
		{"served_layers", &in.Served}, {"fragments", &in.Fragments}, {"alive", &in.Alive},
	} {
		if err := decodeField(fields, in.ID, f.name, f.into); err != nil {
			return err
		}
	}
	got := NodeState{in.ID, in.LatencyMS, in.Load, in.Score, in.Served, in.Fragments, !in.Alive}
	if err := got.Validate(); err != nil {
		return err
	}
	*n = got
	return nil
}

type rawField struct {
	value json.RawMessage
	times int
}

func decodeField(fields map[string]rawField, node, name string, into any) error {
	f, ok := fields[name]
	switch {
	case !ok:
		return nil
	case f.times > 1:
		return &FieldError{Node: node, Field: name, Problem: "is given twice"}
	}
	if err := json.Unmarshal(f.value, into); err != nil {
		return &FieldError{Node: node, Field: name, Problem: problemText(err)}
	}
	return nil
}

// problemText says what encoding/json found in the words of a FieldError.
func problemText(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "is a " + wrong.Value + " where a " + wrong.Type.String() + " belongs"
	}
	return err.Error()
}

// objectFields splits a JSON object into its members, exactly spelled, and
// counts how often each occurs: encoding/json would silently take the last.
func objectFields(data []byte) (map[string]rawField, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("is not a JSON object: %s", clipText(data))
	}
	fields := map[string]rawField{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		f := fields[name]
		if err := dec.Decode(&f.value); err != nil {
			return nil, err
		}
		f.times++
		fields[name] = f
	}
	return fields, nil
}

// UnmarshalJSON reads a fragment; model and layers are both required, since a
// missing range must not be taken for layer 0.
func (f *Fragment) UnmarshalJSON(data []byte) error {
	var in struct {
		Model  string      `json:"model"`
		Layers *LayerRange `json:"layers"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if in.Model == "" || in.Layers == nil {
		return fmt.Errorf("fragment %s needs a model and its layers", clipText(data))
	}
	*f = Fragment{Model: in.Model, Layers: *in.Layers}
	return nil
}
