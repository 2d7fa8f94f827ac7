package plane

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/admin"
	"hecate/internal/control/identity"
	"hecate/internal/control/keys"
)

func openAdmin(t *testing.T, path string) *admin.Client {
	t.Helper()
	c, err := admin.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAdministrationOverTheSocketAndFromElsewhere(t *testing.T) {
	dir := t.TempDir()
	g := startGateway(t, dir, control.Patience{})
	addModel(t, g)
	for _, file := range []string{"admin.json", "admin.sock"} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	copied := filepath.Join(t.TempDir(), "access.json") // without the socket beside it
	data, err := os.ReadFile(filepath.Join(dir, "admin.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, copied} {
		if info, err := openAdmin(t, path).Info(t.Context()); err != nil || info.Swarm != g.Swarm() || info.Gateway != "gateway" {
			t.Errorf("%s: %+v, %v", path, info, err)
		}
	}
}

func TestAnOperatorsDay(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	g := startGateway(t, dir, control.Patience{})
	addModel(t, g)
	c := openAdmin(t, dir)
	if nodes, err := c.Nodes(ctx); err != nil || len(nodes) != 0 {
		t.Errorf("nodes: %v, %v", nodes, err)
	}
	if _, err := c.Plan(ctx); !errors.Is(err, control.ErrNotFound) {
		t.Errorf("plan before any node: %v", err)
	}
	made, err := c.CreateToken(ctx, admin.TokenRequest{Uses: 2, Life: time.Hour, Note: "for the attic"})
	if err != nil {
		t.Fatal(err)
	}
	startWorker(t, t.TempDir(), "a", made.Token)
	startWorker(t, t.TempDir(), "b", made.Token)
	await(t, "both hold layers", func() bool { return holding(g) == 2 })
	if tokens, err := c.Tokens(ctx); err != nil || len(tokens) != 1 || tokens[0].Used != 2 || tokens[0].Note != "for the attic" {
		t.Errorf("tokens: %+v, %v", tokens, err)
	}
	if err := c.RevokeToken(ctx, made.ID); err != nil {
		t.Error(err)
	}
	if err := c.Pause(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	await(t, "the pause is seen", func() bool { return !g.Membership().View().Member("a").Usable() })
	if err := c.Resume(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	await(t, "the pause is over", func() bool { return g.Membership().View().Member("a").Usable() })
	if effects, err := c.WhatIf(ctx, "a"); err != nil || len(effects) != 1 {
		t.Errorf("what if: %v, %v", effects, err)
	}
	if found, err := c.Reach(ctx); err != nil || len(found) != 2 {
		t.Errorf("reach: %v, %v", found, err)
	}
	if err := c.Remove(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	await(t, "it is gone", func() bool { return alive(g) == 1 })
	nodes, err := c.Nodes(ctx)
	if err != nil || len(nodes) != 2 || nodes[0].Status != "alive" || nodes[0].Health == nil || nodes[1].Status != "left" {
		t.Errorf("nodes: %+v, %v", nodes, err)
	}
}

func TestKeysAndModelsAreAdministered(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	g := startGateway(t, dir, control.Patience{})
	c := openAdmin(t, dir)
	made, err := c.CreateKey(ctx, keys.Options{Note: "phone"})
	if err != nil || made.Key == "" {
		t.Fatal(made, err)
	}
	if list, err := c.Keys(ctx); err != nil || len(list) != 1 || list[0].ID != made.Record.ID {
		t.Errorf("keys: %v, %v", list, err)
	}
	if err := c.RevokeKey(ctx, made.Record.ID); err != nil {
		t.Error(err)
	}
	addModel(t, g)
	models, err := c.Models(ctx)
	if err != nil || len(models) != 1 {
		t.Fatalf("models: %v, %v", models, err)
	}
	other := *models[0]
	other.ID, other.Spec.ID = "other", "other"
	if err := c.PutModel(ctx, &other); err != nil {
		t.Error(err)
	}
	if err := c.RemoveModel(ctx, "demo"); err != nil {
		t.Error(err)
	}
	if models, err = c.Models(ctx); err != nil || len(models) != 1 || models[0].ID != "other" {
		t.Errorf("models: %v, %v", models, err)
	}
}

func TestAdministrationRefusesWithWords(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	startGateway(t, dir, control.Patience{})
	c := openAdmin(t, dir)
	for what, err := range map[string]error{
		"pause of nobody":      c.Pause(ctx, "nobody"),
		"pause of a path":      c.Pause(ctx, "../x"),
		"revoke of no token":   c.RevokeToken(ctx, "nothing"),
		"revoke of no key":     c.RevokeKey(ctx, "nothing"),
		"removal of no model":  c.RemoveModel(ctx, "nothing"),
		"a model without size": c.PutModel(ctx, &control.ModelRecord{Version: 1, ID: "x"}),
	} {
		if err == nil || errors.Is(err, admin.ErrNotRunning) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := c.CreateToken(ctx, admin.TokenRequest{Uses: -1}); err == nil {
		t.Error("a token for nobody")
	}
	if _, err := c.CreateKey(ctx, keys.Options{RequestsPerMinute: -1}); err == nil {
		t.Error("a key with a negative limit")
	}
	if _, err := admin.Open(t.TempDir()); !errors.Is(err, admin.ErrNotRunning) {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestEveryRouteWantsTheAdminToken asks each with what others have.
func TestEveryRouteWantsTheAdminToken(t *testing.T) {
	dir := t.TempDir()
	g := startGateway(t, dir, control.Patience{})
	w := startWorker(t, t.TempDir(), "mini", token(t, g, 1))
	data, err := os.ReadFile(filepath.Join(dir, "admin.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), `"token": "`)
	secret, _, _ := strings.Cut(rest, `"`)
	node := &http.Client{Transport: &http.Transport{
		TLSClientConfig: w.node.Credentials().Client(identity.RoleGateway, ""), DisableKeepAlives: true,
	}}
	ask := func(method, path, authorization, origin string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "https://"+g.JoinAddresses()[0]+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", authorization)
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		resp, err := node.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.StatusCode
	}
	named := strings.NewReplacer("{id}", "mini", "{action}", "remove")
	for _, route := range append(admin.Routes(), "GET /v1/admin/nothing") {
		method, path, _ := strings.Cut(named.Replace(route), " ")
		for _, authorization := range []string{"", "Bearer ", "Bearer x" + secret, "Bearer " + secret[1:], secret, "Basic " + secret} {
			if status := ask(method, path, authorization, ""); status != http.StatusForbidden {
				t.Errorf("%s with %.10q: %d", route, authorization, status)
			}
		}
		if status := ask(method, path, "Bearer "+secret, "https://evil.example"); status != http.StatusForbidden {
			t.Errorf("%s from a browser: %d", route, status)
		}
	}
	if status := ask("GET", "/v1/admin/info", "Bearer "+secret, ""); status != http.StatusOK {
		t.Errorf("with the token: %d", status)
	}
}

func TestTheAdminTokenSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	g := startGateway(t, dir, control.Patience{})
	before, err := os.ReadFile(filepath.Join(dir, "admin.json"))
	if err != nil {
		t.Fatal(err)
	}
	g.Close()
	c := openAdmin(t, dir)
	if _, err := c.Info(t.Context()); !errors.Is(err, admin.ErrNotRunning) {
		t.Errorf("a stopped gateway: %v", err)
	}
	startGateway(t, dir, control.Patience{})
	after, err := os.ReadFile(filepath.Join(dir, "admin.json"))
	if err != nil || string(before) != string(after) {
		t.Errorf("%s became %s (%v)", before, after, err)
	}
	if _, err := c.CreateToken(t.Context(), admin.TokenRequest{}); err != nil {
		t.Error(err)
	}
}
