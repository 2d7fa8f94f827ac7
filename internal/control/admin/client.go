package admin

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/doctor"
	"hecate/internal/control/enrol"
	"hecate/internal/control/identity"
	"hecate/internal/control/keys"
	"hecate/swarm"
)

// A Client administers one gateway.
type Client struct {
	token string
	ways  []way
}

// A way is how to reach the gateway: its socket, or one of its addresses.
type way struct {
	name string // for people
	base string // of URLs
	http *http.Client
}

const timeout = 15 * time.Second

// Open makes a client for the gateway of a data folder on this machine, or for
// an access file that was copied from one. It does not connect yet.
func Open(path string) (*Client, error) {
	a, err := readAccess(path)
	dir := filepath.Dir(path)
	if err != nil { // a folder is no file to read, so the file in it is meant
		dir = path
		a, err = readAccess(filepath.Join(path, accessFile))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s holds no admin token; name its data folder with --data", ErrNotRunning, path)
	}
	if err != nil {
		return nil, err
	}
	pin, err := hex.DecodeString(a.Fingerprint)
	if err != nil || len(pin) != 32 {
		return nil, fmt.Errorf("%s: the authority's fingerprint in it is damaged", path)
	}
	c := &Client{token: a.Token, ways: []way{socketWay(SocketPath(dir))}}
	for _, address := range a.Addresses {
		c.ways = append(c.ways, tlsWay(address, [32]byte(pin)))
	}
	return c, nil
}

func socketWay(path string) way {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return way{
		name: path, base: "http://gateway",
		http: &http.Client{Timeout: timeout, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}},
	}
}

func tlsWay(address string, pin [32]byte) way {
	return way{
		name: address, base: "https://" + strings.ReplaceAll(address, "%", "%25"), // the zone of a link-local address
		http: &http.Client{Timeout: timeout, Transport: &http.Transport{TLSClientConfig: identity.Pinned(pin), DisableKeepAlives: true}},
	}
}

// call takes the first way on which a gateway answers.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("asking the gateway: %w", err)
		}
	}
	var failures []error
	for _, w := range c.ways {
		err := w.call(ctx, method, path, c.token, body, out)
		var unreached *url.Error
		if err == nil || !errors.As(err, &unreached) {
			return err
		}
		failures = append(failures, fmt.Errorf("%s: %w", w.name, unreached.Err))
	}
	return fmt.Errorf("%w: %w", ErrNotRunning, errors.Join(failures...))
}

func (w way) call(ctx context.Context, method, path, token string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, w.base+pathPrefix+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking the gateway: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := w.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the gateway's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return decodeFailure(resp.StatusCode, data)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("reading the gateway's answer: %w", err)
	}
	return nil
}

func get[T any](ctx context.Context, c *Client, path string) (out T, err error) {
	err = c.call(ctx, http.MethodGet, path, nil, &out)
	return out, err
}

// Info says which gateway answers.
func (c *Client) Info(ctx context.Context) (Info, error) { return get[Info](ctx, c, "info") }

// Nodes lists all nodes, removed ones too.
func (c *Client) Nodes(ctx context.Context) ([]NodeInfo, error) {
	return get[[]NodeInfo](ctx, c, "nodes")
}

// Pause lets a node finish what runs and take nothing new.
func (c *Client) Pause(ctx context.Context, node string) error { return c.steer(ctx, node, "pause") }

// Drain empties a node as fast as others take over; it stays a member.
func (c *Client) Drain(ctx context.Context, node string) error { return c.steer(ctx, node, "drain") }

// Evacuate is Drain, and what runs on the node moves to others at once.
func (c *Client) Evacuate(ctx context.Context, node string) error {
	return c.steer(ctx, node, "evacuate")
}

// Resume ends a pause, or fills a drained node again.
func (c *Client) Resume(ctx context.Context, node string) error { return c.steer(ctx, node, "resume") }

// Remove drains a node and then takes it out of the swarm; it comes back with
// a token only.
func (c *Client) Remove(ctx context.Context, node string) error { return c.steer(ctx, node, "remove") }

// Expel takes a node out of the swarm at once, whatever it holds.
func (c *Client) Expel(ctx context.Context, node string) error { return c.steer(ctx, node, "expel") }

func (c *Client) steer(ctx context.Context, node, action string) error {
	return c.call(ctx, http.MethodPost, "nodes/"+url.PathEscape(node)+"/"+action, nil, nil)
}

// Plan is the current plan.
func (c *Client) Plan(ctx context.Context) (*control.PlanDocument, error) {
	return get[*control.PlanDocument](ctx, c, "plan")
}

// WhatIf says what a node's death would mean for each model.
func (c *Client) WhatIf(ctx context.Context, node string) ([]swarm.Effect, error) {
	return get[[]swarm.Effect](ctx, c, "what-if/"+url.PathEscape(node))
}

// Reach says what the gateway can reach.
func (c *Client) Reach(ctx context.Context) ([]doctor.Finding, error) {
	return get[[]doctor.Finding](ctx, c, "reach")
}

// Tokens lists the join tokens, without their secrets.
func (c *Client) Tokens(ctx context.Context) ([]enrol.TokenRecord, error) {
	return get[[]enrol.TokenRecord](ctx, c, "tokens")
}

// CreateToken makes a join token.
func (c *Client) CreateToken(ctx context.Context, in TokenRequest) (made MadeToken, err error) {
	err = c.call(ctx, http.MethodPost, "tokens", in, &made)
	return made, err
}

// RevokeToken makes a join token worthless.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "tokens/"+url.PathEscape(id), nil, nil)
}

// Keys lists the API keys, without their secrets.
func (c *Client) Keys(ctx context.Context) ([]keys.Record, error) {
	return get[[]keys.Record](ctx, c, "keys")
}

// CreateKey makes an API key.
func (c *Client) CreateKey(ctx context.Context, in keys.Options) (made MadeKey, err error) {
	err = c.call(ctx, http.MethodPost, "keys", in, &made)
	return made, err
}

// RevokeKey makes an API key worthless.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "keys/"+url.PathEscape(id), nil, nil)
}

// Models lists the catalogue.
func (c *Client) Models(ctx context.Context) ([]*control.ModelRecord, error) {
	return get[[]*control.ModelRecord](ctx, c, "models")
}

// PutModel adds a model to the catalogue. Its file must be where the record's
// Source says, on the gateway's machine.
func (c *Client) PutModel(ctx context.Context, rec *control.ModelRecord) error {
	return c.call(ctx, http.MethodPost, "models", rec, nil)
}

// RemoveModel takes a model out of the catalogue.
func (c *Client) RemoveModel(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "models/"+url.PathEscape(id), nil, nil)
}

// Engines lists the whole-model engines, as the gateway sees them.
func (c *Client) Engines(ctx context.Context) ([]control.EngineView, error) {
	return get[[]control.EngineView](ctx, c, "engines")
}

// PutEngine registers an engine, or replaces the one of its name.
func (c *Client) PutEngine(ctx context.Context, in EngineRequest) (view control.EngineView, err error) {
	err = c.call(ctx, http.MethodPost, "engines", in, &view)
	return view, err
}

// RemoveEngine takes an engine out.
func (c *Client) RemoveEngine(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "engines/"+url.PathEscape(id), nil, nil)
}
