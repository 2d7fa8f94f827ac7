package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The commands that every node answers by itself. Others are given to the
// Reporter by the node's room.
const (
	CommandWho        = "who"        // answers with a Who
	CommandSuperseded = "superseded" // a newer start of this node was seen; argument: Who
)

// CommandDial asks a node to connect its data plane to a gateway, which cannot
// reach it; argument: DialRequest. It is asked again and again: a node goes on
// for DialFor after the last time. The node's room answers it.
const CommandDial = "dial"

// DialFor is how long a node keeps connecting to a gateway that asks no more.
const DialFor = time.Minute

// A DialRequest says where a gateway waits for nodes that it cannot reach.
type DialRequest struct {
	Gateway   string   `json:"gateway"`   // its id, which it must prove
	Addresses []string `json:"addresses"` // host:port each, the best first
}

// A Command asks a node to do something now. What must hold for longer goes
// through the plan document, which cannot be missed.
type Command struct {
	Version int             `json:"version"`
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"args,omitempty"`
}

type commandReply struct {
	Version int             `json:"version"`
	Error   string          `json:"error,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (c *Command) kind() string  { return "command" }
func (c *Command) version() *int { return &c.Version }

// Validate wants a name of reasonable length.
func (c *Command) Validate() error {
	if c.Name == "" || len(c.Name) > maxModelName {
		return fmt.Errorf("name of %d characters, want 1 to %d", len(c.Name), maxModelName)
	}
	return nil
}

func (r *commandReply) kind() string    { return "command reply" }
func (r *commandReply) version() *int   { return &r.Version }
func (r *commandReply) Validate() error { return nil }

// A CommandFunc executes a command: args is its JSON argument (may be empty),
// the result is answered as JSON.
type CommandFunc func(ctx context.Context, args json.RawMessage) (any, error)

// Call sends a command to a node and decodes its answer into result (nil: the
// answer has no content). args nil means none. ErrNoResponder: the node is not
// on the bus.
func Call(ctx context.Context, bus Bus, node, name string, args, result any) error {
	c := &Command{Name: name}
	var err error
	if args != nil {
		if c.Args, err = json.Marshal(args); err != nil {
			return fmt.Errorf("command %s for node %s: %w", name, node, err)
		}
	}
	data, err := Encode(c)
	if err != nil {
		return err
	}
	answer, err := bus.Request(ctx, CommandSubject(node), data)
	if err != nil {
		return fmt.Errorf("command %s for node %s: %w", name, node, err)
	}
	var reply commandReply
	if err := Decode(answer, &reply); err != nil {
		return fmt.Errorf("command %s for node %s: %w", name, node, err)
	}
	if reply.Error != "" {
		return fmt.Errorf("command %s: node %s says: %s", name, node, reply.Error)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(reply.Data, result); err != nil {
		return fmt.Errorf("command %s: answer of node %s: %w", name, node, err)
	}
	return nil
}

// Who says which process has a node's identity.
type Who struct {
	Node        string `json:"node"`
	Incarnation uint64 `json:"incarnation"`
	Instance    string `json:"instance"`
	Host        string `json:"host"`
	PID         int    `json:"pid"`
}

// AskWho asks a node who it is.
func AskWho(ctx context.Context, bus Bus, node string) (Who, error) {
	var w Who
	err := Call(ctx, bus, node, CommandWho, nil, &w)
	return w, err
}

// execute runs one command of the table and answers it.
func execute(ctx context.Context, table map[string]CommandFunc, msg Message) error {
	var reply commandReply
	var c Command
	result, err := any(nil), Decode(msg.Data, &c)
	if err == nil {
		fn := table[c.Name]
		if fn == nil {
			err = fmt.Errorf("no command %q here", c.Name)
		} else {
			result, err = fn(ctx, c.Args)
		}
	}
	if err == nil && result != nil {
		reply.Data, err = json.Marshal(result)
	}
	if err != nil {
		reply.Error = err.Error()
	}
	if msg.Respond == nil {
		return err
	}
	data, encodeErr := Encode(&reply)
	if encodeErr != nil {
		return encodeErr
	}
	return errors.Join(err, msg.Respond(data))
}
