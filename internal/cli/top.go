package cli

import (
	"context"
	"errors"
	"io"
	"net/http"

	"hecate/internal/control/admin"
	"hecate/internal/top"
)

type topCmd struct {
	where
}

// Help is shown by hecate top --help.
func (*topCmd) Help() string {
	return "Shows nodes, copies, speed and events as they change. Keys: q quits, up and down choose a node, p pauses it, r resumes it " +
		"(on the gateway's machine).\n\nExamples:\n  hecate top\n  hecate top --url http://192.168.1.10:8080 --key KEY"
}

// Run shows the swarm live until the user leaves.
func (t *topCmd) Run(ctx context.Context, c console) error {
	if !isTerminal(c.out) {
		return usage("hecate top wants a terminal; `hecate status --json` and GET /v1/swarm/live are for programs")
	}
	if _, err := t.base(); err != nil {
		return err
	}
	cfg := top.Config{In: c.in, Out: c.out, Open: t.live, Why: "nodes are paused on the gateway's machine: hecate node pause"}
	if client, err := (administered{Data: t.Data}).open(); err == nil && t.URL == "" {
		cfg.Steer = func(ctx context.Context, node, action string) error { return steerNode(ctx, client, node, action) }
	}
	return top.Run(ctx, cfg)
}

func (t *topCmd) live(ctx context.Context) (io.ReadCloser, error) {
	resp, err := t.call(ctx, http.MethodGet, "/v1/swarm/live", nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

func steerNode(ctx context.Context, client *admin.Client, node, action string) error {
	switch action {
	case "pause":
		return client.Pause(ctx, node)
	case "resume":
		return client.Resume(ctx, node)
	}
	return errors.New("there is no such action")
}
