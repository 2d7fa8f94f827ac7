//go:build !noengine

package test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"hecate/test/harness"
)

// A client who reads nothing of his answer does not keep a machine from being
// emptied. When he reads on he has all of it, the same as ever: he was not cut off,
// as he would have been had the machine waited for him.
func TestADrainDoesNotWaitForAStalledClient(t *testing.T) {
	t.Parallel()
	s := harness.Up(t, "--nodes", "3", "--copies", "2")
	want := s.Ask(harness.Story, nil).Text()
	c := stall(t, s)
	defer c.Close()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	node := nodesOf(resp.Header.Get("X-Hecate-Route"))[0]
	steady(s)
	running := s.Status().Answers.Running
	if running == 0 {
		t.Fatal("the client was to be too slow for his answer")
	}
	s.Do("node", "drain", node, "--now")
	s.Await(node+" holds nothing", settleWait, func() bool {
		for _, n := range s.Status().Nodes {
			if n.ID == node {
				return n.Sessions == 0 && len(n.Fragments) == 0
			}
		}
		return false
	})
	if n := s.Status().Answers.Running; n != running {
		t.Errorf("%d answers run, want the stalled %d", n, running)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("the client was cut off: %v", err)
	}
	texts, rescues, done := spelt(t, body)
	if rescues == 0 || !done || len(texts) != stalledChoices {
		t.Errorf("done %v, %d rescues, %d choices", done, rescues, len(texts))
	}
	for i, text := range texts {
		if text != want {
			t.Errorf("choice %d is %q, want %q", i, text, want)
		}
	}
	if a := s.Status().Answers; a.Lost != 0 {
		t.Errorf("%d answers were lost", a.Lost)
	}
}

// stalledChoices make an answer that is larger than what lies between gateway and
// client.
const stalledChoices = 4

// stall asks for much, by a connection whose other end has room for little.
func stall(t *testing.T, s *harness.Swarm) net.Conn {
	t.Helper()
	host := strings.TrimPrefix(s.URL, "http://")
	c := dialNarrow(t, host)
	body, err := json.Marshal(map[string]any{
		"model": harness.Model, "temperature": 0, "messages": []map[string]string{{"role": "user", "content": harness.Story}},
		"stream": true, "n": stalledChoices, "logprobs": true, "top_logprobs": 20, "stream_options": map[string]any{"include_usage": true},
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", host, len(body), body)
	return c
}

// dialNarrow connects with so small a window, from the beginning, that the other
// side's buffers do not grow either.
func dialNarrow(t *testing.T, host string) net.Conn {
	t.Helper()
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		if e := raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) }); e != nil {
			return e
		}
		return err
	}}
	c, err := d.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// spelt puts the texts of a stream together, by choice.
func spelt(t *testing.T, body []byte) (texts map[int]string, rescues int, done bool) {
	t.Helper()
	texts = map[int]string{}
	for line := range strings.Lines(string(body)) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if done = done || data == "[DONE]"; !ok || data == "[DONE]" {
			continue
		}
		var e struct {
			Choices []struct {
				Index int
				Delta struct{ Content string }
			}
			Hecate struct{ Rescues int }
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		for _, c := range e.Choices {
			texts[c.Index] += c.Delta.Content
		}
		rescues = max(rescues, e.Hecate.Rescues)
	}
	return texts, rescues, done
}
