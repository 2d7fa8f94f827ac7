package top

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hecate/internal/report"
)

// Event is what happened, as GET /v1/swarm/events words it.
type Event struct {
	Time  time.Time `json:"time"`
	Level string    `json:"level"`
	Text  string    `json:"text"`
}

// Picture is the swarm as it was last heard of.
type Picture struct {
	Swarm   report.Swarm
	Answers report.Answers
	Pool    report.LivePool
	Pulse   report.Pulse
	Nodes   map[string]report.LiveNode
	Models  map[string]report.Model
	Flows   []report.Flow
	History []report.Pulse // a second each, the newest last
	Events  []Event        // the newest last

	Connected bool
	Trouble   string // why it is not connected, or what was not understood
}

// What is kept; a screen shows less.
const (
	keepSeconds = 300
	keepEvents  = 200
)

// NewPicture is one of nothing.
func NewPicture() *Picture {
	return &Picture{Nodes: map[string]report.LiveNode{}, Models: map[string]report.Model{}}
}

// Apply takes one message of the stream.
func (p *Picture) Apply(name string, data []byte) error {
	switch name {
	case "frame":
		return p.frame(data)
	case "history":
		return json.Unmarshal(data, &p.History)
	case "event":
		var e Event
		if err := json.Unmarshal(data, &e); err != nil {
			return err
		}
		if e.Level != "debug" { // routine
			p.Events = lastOf(append(p.Events, e), keepEvents)
		}
	}
	return nil // "missed", and what later gateways may say
}

func (p *Picture) frame(data []byte) error {
	var f report.Frame
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	if f.Full {
		p.Nodes, p.Models = map[string]report.LiveNode{}, map[string]report.Model{}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Parts)) {
		if err := p.part(name, f.Parts[name]); err != nil {
			return fmt.Errorf("part %s of the picture: %w", name, err)
		}
	}
	return nil
}

func (p *Picture) part(name string, body json.RawMessage) error {
	kind, id, _ := strings.Cut(name, "/")
	switch kind {
	case "node":
		return keep(p.Nodes, id, body)
	case "model":
		return keep(p.Models, id, body)
	case "swarm":
		return renew(&p.Swarm, body)
	case "answers":
		return renew(&p.Answers, body)
	case "pool":
		return renew(&p.Pool, body)
	case "flows":
		return renew(&p.Flows, body)
	case "pulse":
		return renew(&p.Pulse, body)
	}
	return nil // of a later gateway
}

// keep puts a part under its name, or takes it away when it is gone.
func keep[T any](among map[string]T, id string, body json.RawMessage) error {
	if string(body) == "null" {
		delete(among, id)
		return nil
	}
	var fresh T
	err := json.Unmarshal(body, &fresh)
	among[id] = fresh
	return err
}

// renew decodes a part into a value of its own: what it leaves out must not
// stay from the one before.
func renew[T any](into *T, body json.RawMessage) error {
	var fresh T
	err := json.Unmarshal(body, &fresh)
	*into = fresh
	return err
}

// Tick is called once a second: the pulse becomes history.
func (p *Picture) Tick() { p.History = lastOf(append(p.History, p.Pulse), keepSeconds) }

// NodeNames in the order in which they are shown.
func (p *Picture) NodeNames() []string { return slices.Sorted(maps.Keys(p.Nodes)) }

func lastOf[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }
