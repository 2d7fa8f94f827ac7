package gatewaybench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// kind is one sort of request.
type kind struct {
	name   string
	body   string
	stream bool
	share  int // requests for every hundred small ones
}

func kinds() []kind {
	ask := func(more, text string) string {
		return `{"model":"` + Model + `",` + more + `"messages":[{"role":"user","content":"` + text + `"}]}`
	}
	return []kind{
		{"small JSON", ask("", "What is the capital of France?"), false, 100},
		{"ten events", ask(`"stream":true,`, "Tell me a story."), true, 50},
		{"100 KB body", ask("", strings.Repeat("All work and no play. ", 100_000/22)), false, 50},
	}
}

const parallel = 16

// load sends n requests, sixteen at a time, and gives how long it took.
func load(ctx context.Context, client *http.Client, url string, k kind, n int) (time.Duration, error) {
	var wg sync.WaitGroup
	var left atomic.Int64
	var fault atomic.Pointer[error]
	left.Store(int64(n))
	began := time.Now()
	for range parallel {
		wg.Go(func() {
			for left.Add(-1) >= 0 && fault.Load() == nil {
				if err := one(ctx, client, url, k); err != nil {
					fault.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := fault.Load(); err != nil {
		return 0, *err
	}
	return time.Since(began), ctx.Err()
}

func request(ctx context.Context, url string, k kind) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(k.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if k.stream {
		req.Header.Set("Accept", streamMark)
	}
	return req, nil
}

func one(ctx context.Context, client *http.Client, url string, k kind) error {
	req, err := request(ctx, url, k)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return fmt.Errorf("an answer broke: %w", err)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(b))
	case k.stream && bytes.Count(b, []byte("lantern")) != events, !k.stream && string(b) != wholeReply:
		return fmt.Errorf("another answer than the upstream's: %.200q", b)
	}
	return nil
}

// pace is between two events when their delay is measured, in ms.
const pace = 4

// delays streams one answer and gives how long each event was on its way.
func delays(ctx context.Context, client *http.Client, url string, k kind) ([]time.Duration, error) {
	req, err := request(ctx, url, k)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Openai-Beta", strconv.Itoa(pace))
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out []time.Duration
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), `data: {"id":"`)
		if !ok {
			continue
		}
		now := time.Now().UnixNano()
		text, _, _ := strings.Cut(rest, `"`)
		left, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("an event without its time: %w", err)
		}
		out = append(out, time.Duration(now-left))
	}
	if lines.Err() != nil || len(out) != events {
		return nil, fmt.Errorf("a stream of %d events, want %d: %w", len(out), events, lines.Err())
	}
	return out, nil
}
