package engines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The test whether an engine continues a prefix: a greedy completion is streamed,
// then asked for again from several places in its middle. Each continuation must be
// the rest, byte for byte, and each event one token, so that what is left of the
// limit can be counted. It is made for each model, once.
const (
	proofTokens = 24
	proofTime   = 60 * time.Second
	proofModels = 16 // of one engine; loading a model may take a machine's whole memory
)

var (
	proofPrompts = []string{
		"Here is a long story about a fox, a lantern and a harbour town in autumn.\n\nOnce",
		"The numbers from one to one hundred in words: one, two, three,",
	}
	proofCuts = []int{1, 7, 12, 19} // events before the cut
)

// prove tests the models of an engine that were not tested yet.
func (r *Engines) prove(ctx context.Context, e *engine) {
	r.mu.Lock()
	var todo []string
	for _, m := range e.models[:min(len(e.models), proofModels)] {
		if _, done := e.resumes[m]; !done {
			todo = append(todo, m)
		}
	}
	r.mu.Unlock()
	for _, model := range todo {
		err := proof(ctx, e, r.key(e), model)
		if ctx.Err() != nil || errors.Is(err, errNoProof) {
			return // it says nothing about the model; the next look tries again
		}
		e.log.Info("resuming from a prefix was tested", "model", model, "can", err == nil, "because", err)
		r.mu.Lock()
		next := map[string]bool{model: err == nil}
		for m, can := range e.resumes {
			next[m] = can
		}
		e.resumes = next
		r.mu.Unlock()
	}
}

// errNoProof: the engine could not be asked.
var errNoProof = errors.New("the test could not be made")

func proof(ctx context.Context, e *engine, key, model string) error {
	ctx, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	for _, prompt := range proofPrompts {
		pieces, err := complete(ctx, e, key, model, prompt, proofTokens)
		if err != nil {
			return err
		}
		if len(pieces) != proofTokens {
			return fmt.Errorf("%d tokens came in %d events", proofTokens, len(pieces))
		}
		for _, cut := range proofCuts {
			said := strings.Join(pieces[:cut], "")
			rest, err := complete(ctx, e, key, model, prompt+said, proofTokens-cut)
			if err != nil {
				return err
			}
			if !slices.Equal(rest, pieces[cut:]) {
				return fmt.Errorf("after %d tokens it goes on differently", cut)
			}
		}
	}
	return nil
}

// complete streams a greedy completion and gives the text of each event.
func complete(ctx context.Context, e *engine, key, model, prompt string, n int) ([]string, error) {
	body, err := json.Marshal(map[string]any{"model": model, "prompt": prompt, "max_tokens": n, "temperature": 0, "stream": true})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.rec.URL+"/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := e.client.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoProof, err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(io.LimitReader(resp.Body, wholeUpTo))
	switch {
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || err != nil:
		return nil, fmt.Errorf("%w: %s: %w", errNoProof, resp.Status, err)
	case resp.StatusCode != http.StatusOK:
		return nil, errors.New("it answers " + resp.Status)
	}
	var pieces []string
	for at := 0; at < len(all); {
		line, next := nextLine(all, at)
		at = next
		data, ok := bytes.CutPrefix(line, dataField)
		var event struct{ Choices []struct{ Text string } }
		if !ok || json.Unmarshal(data, &event) != nil {
			continue
		}
		for _, c := range event.Choices {
			if c.Text != "" {
				pieces = append(pieces, c.Text)
			}
		}
	}
	return pieces, nil
}
