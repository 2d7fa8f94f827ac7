package engines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"time"

	"hecate/internal/control"
)

// How often engines are looked at, and what is made of it.
const (
	lookIdle   = 5 * time.Second
	lookBusy   = 2 * time.Second // while something runs there, or nothing can
	lookTime   = 3 * time.Second // one that lists its models for longer is not well
	missesDead = 3               // looks in a row without an answer
	maxList    = 8 << 20         // bytes of a list of models
	maxModels  = 4096            // of one engine
)

// lookAfter looks at an engine again and again until ctx ends.
func (r *Engines) lookAfter(ctx context.Context, e *engine) {
	misses := 0
	for ctx.Err() == nil {
		f := look(ctx, e, r.key(e))
		if ctx.Err() != nil {
			return
		}
		misses = r.found(e, f, misses)
		if e.rec.Resume && f.err == nil {
			r.prove(ctx, e)
		}
		pause := r.pause(e)
		t := time.NewTimer(pause*3/4 + rand.N(pause/2))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// pause is how long to leave an engine alone.
func (r *Engines) pause(e *engine) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case e.state != up:
		return lookBusy
	case r.cfg.LookEvery > 0:
		return r.cfg.LookEvery
	case e.running > 0:
		return lookBusy
	}
	return lookIdle
}

// key is what an engine wants as Authorization; "" when it wants none.
func (r *Engines) key(e *engine) string {
	if e.rec.KeyEnv == "" {
		return ""
	}
	v, _ := r.cfg.Env(e.rec.KeyEnv)
	return v
}

// finding is what one look has shown.
type finding struct {
	models []string
	err    error
	gone   bool // nobody listens there: no need to look again to be sure
	late   bool // no answer came: it may only be busy
}

// found takes a finding, and gives how many looks in a row have failed.
func (r *Engines) found(e *engine, f finding, misses int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.err == nil {
		e.spoke = e.spoke || e.running > 0
		if e.state != up || !slices.Equal(e.models, f.models) {
			e.log.Info("an engine is up", "models", len(f.models))
			e.models = f.models
			r.becomeLocked(e, up, "")
		}
		e.problem = ""
		return 0
	}
	e.problem = f.err.Error()
	if e.state != up {
		r.becomeLocked(e, down, e.problem)
		return misses
	}
	if heard := time.Unix(0, e.heard.Load()); f.late && (time.Since(heard) < lookTime+lookBusy || e.running > 0 && !e.spoke) {
		return 0 // it computes for us, and has never been seen to do both at once
	}
	if misses++; f.gone || misses >= missesDead {
		e.log.Warn("an engine is down", "because", f.err)
		r.becomeLocked(e, down, e.problem)
	}
	return misses
}

// becomeLocked is the only way into a state.
func (r *Engines) becomeLocked(e *engine, s state, why string) {
	was := e.state
	e.state, e.problem = s, why
	switch {
	case s == up && was != up:
		if e.alive.Err() != nil {
			e.alive, e.die = context.WithCancelCause(context.Background())
		}
		e.circuit.Reset()
	case s == down && was == up:
		e.die(errDead)
	}
	if r.mu.by[e.rec.ID] == e {
		r.planLocked()
		r.serveAllLocked()
	}
}

// look asks an engine for its models.
func look(ctx context.Context, e *engine, key string) finding {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.rec.URL+"/models", nil)
	if err != nil {
		return finding{err: errors.New("its URL cannot be asked")}
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := e.client.RoundTrip(req)
	if err != nil {
		var timeout net.Error
		late := errors.As(err, &timeout) && timeout.Timeout() || ctx.Err() != nil
		return finding{err: fmt.Errorf("it cannot be reached: %w", err), gone: !late, late: late}
	}
	defer resp.Body.Close()
	return e.read(resp, key)
}

func (e *engine) read(resp *http.Response, key string) finding {
	switch {
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusMethodNotAllowed:
		if len(e.rec.Aliases) == 0 {
			return finding{err: fmt.Errorf("it does not list its models (%s): name them with --model ALIAS=NAME, if the URL is right", resp.Status)}
		}
		return finding{models: e.declared()}
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return finding{err: e.keyFault(resp.Status, key)}
	case resp.StatusCode != http.StatusOK:
		return finding{err: fmt.Errorf("it answers %s when asked for its models", resp.Status)}
	}
	var list struct {
		Data []struct{ ID string }
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxList)).Decode(&list); err != nil {
		return finding{err: errors.New("its list of models cannot be read")}
	}
	var models []string
	for _, m := range list.Data {
		if control.ValidateForeignModel(m.ID) == nil && len(models) < maxModels {
			models = append(models, m.ID)
		}
	}
	slices.Sort(models)
	return finding{models: slices.Compact(models)}
}

// declared are the models that the record names, for engines that list none.
func (e *engine) declared() []string {
	var out []string
	for _, own := range e.rec.Aliases {
		out = append(out, own)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (e *engine) keyFault(status, key string) error {
	switch {
	case e.rec.KeyEnv == "":
		return fmt.Errorf("it wants an API key (%s): name the variable that holds it with --key-env", status)
	case key == "":
		return fmt.Errorf("it wants an API key (%s), and the gateway's environment has no %s", status, e.rec.KeyEnv)
	}
	return fmt.Errorf("it refuses the key in %s (%s)", e.rec.KeyEnv, status)
}

// Probe looks at an engine that is about to be registered.
func (r *Engines) Probe(ctx context.Context, rec control.EngineRecord) (control.EngineView, error) {
	e, err := newEngine(rec, r.cfg.Log)
	if err != nil {
		return control.EngineView{}, err
	}
	defer e.client.CloseIdleConnections()
	f := look(ctx, e, r.key(e))
	if f.err != nil {
		return control.EngineView{}, f.err
	}
	e.models, e.state = f.models, up
	for alias, own := range rec.Aliases {
		if !e.has(own) {
			return control.EngineView{}, fmt.Errorf("it has no model %q that %q could stand for; it has %v", own, alias, f.models)
		}
	}
	return e.view(time.Now()), nil
}
