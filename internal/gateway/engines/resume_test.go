package engines

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"hecate/internal/control"
)

// teller continues any prompt deterministically: the next word is a function of all
// before. forgetful ones begin anew each time.
type teller struct {
	forgetful bool
	dieAfter  atomic.Int64 // events of the next answer; 0: it does not die
	asked     atomic.Int64
}

func (s *teller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Prompt    string
		MaxTokens int `json:"max_tokens"`
		Stream    bool
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id := s.asked.Add(1)
	die := s.dieAfter.Swap(0)
	w.Header().Set("Content-Type", "text/event-stream")
	text := q.Prompt
	if s.forgetful {
		text = ""
	}
	for i := range q.MaxTokens {
		if die > 0 && int64(i) == die {
			panic(http.ErrAbortHandler)
		}
		word := " " + nextWord(text)
		text += word
		fmt.Fprintf(w, "data: {\"id\":\"cmpl-%d\",\"created\":%d,\"choices\":[{\"text\":%s,\"finish_reason\":null}]}\n\n", id, id, quoted(word))
		_ = http.NewResponseController(w).Flush()
	}
	fmt.Fprintf(w, "data: {\"id\":\"cmpl-%d\",\"created\":%d,\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n", id, id)
}

func nextWord(text string) string {
	sum := uint32(2166136261)
	for i := range len(text) {
		sum = (sum ^ uint32(text[i])) * 16777619
	}
	return fmt.Sprintf("w\u00e4%d", sum%1000)
}

func told(prompt string, n int) (text string) {
	for range n {
		text += " " + nextWord(prompt+text)
	}
	return text
}

// textOf is what a client reads of a stream of completions, with the ids seen.
func textOf(t *testing.T, body string) (text string, ids map[string]bool, finish string) {
	t.Helper()
	ids = map[string]bool{}
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var e struct {
			ID      string
			Created int
			Choices []struct {
				Text   string
				Finish string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		ids[fmt.Sprint(e.ID, e.Created)] = true
		for _, c := range e.Choices {
			text, finish = text+c.Text, finish+c.Finish
		}
	}
	return text, ids, finish
}

const goOnAsk = `{"model":"m","prompt":"Once upon \"a\" time","max_tokens":20,"temperature":0,"stream":true}`

// A stream that breaks goes on where it stood, on another engine or on the same
// one, if a test has shown that these can.
func TestStreamsGoOnWhereThatWasProved(t *testing.T) {
	want := told(`Once upon "a" time`, 20)
	for name, engines := range map[string][]*teller{"one": {{}}, "two": {{}, {}}, "one of two can": {{}, {forgetful: true}}} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, Config{})
			for i, e := range engines {
				h.engine(control.EngineRecord{ID: fmt.Sprint("e", i), URL: server(t, "m", e.ServeHTTP), Resume: true})
			}
			if v := h.room.Views(); !v[0].Resumes["m"] || len(v) > 1 && v[1].Resumes["m"] == engines[1].forgetful {
				t.Fatalf("the test found %+v", v)
			}
			for die := int64(1); die < 20; die += 3 {
				for _, e := range engines {
					e.dieAfter.Store(die)
				}
				r := h.post("/v1/completions", goOnAsk)
				text, ids, finish := textOf(t, r.body)
				if r.err != nil || text != want || finish != "length" || len(ids) != 1 || !strings.HasSuffix(r.body, "data: [DONE]\n\n") {
					t.Errorf("dead after %d: %v, ids %v, finish %q, %q, want %q", die, r.err, ids, finish, text, want)
				}
				h.forgive(engines...)
			}
		})
	}
}

// forgive clears what an earlier part of a test has left behind.
func (h *house) forgive(engines ...*teller) {
	for _, e := range engines {
		e.dieAfter.Store(0)
	}
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	for _, e := range h.room.mu.by {
		e.circuit.Reset()
	}
}

// What nobody proved, or cannot be cut in two, ends with an error.
func TestStreamsThatCannotGoOnSaySo(t *testing.T) {
	for name, c := range map[string]struct {
		rec       control.EngineRecord
		forgetful bool
		ask       string
	}{
		"never tested":     {ask: goOnAsk},
		"the test failed":  {rec: control.EngineRecord{Resume: true}, forgetful: true, ask: goOnAsk},
		"warm":             {rec: control.EngineRecord{Resume: true}, ask: strings.Replace(goOnAsk, `"temperature":0`, `"temperature":0.7`, 1)},
		"penalties":        {rec: control.EngineRecord{Resume: true}, ask: strings.Replace(goOnAsk, "{", `{"presence_penalty":1,`, 1)},
		"a list of tokens": {rec: control.EngineRecord{Resume: true}, ask: strings.Replace(goOnAsk, `"Once upon \"a\" time"`, `"x","suffix":"y"`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, Config{})
			e := &teller{forgetful: c.forgetful}
			c.rec.ID, c.rec.URL = "e", server(t, "m", e.ServeHTTP)
			h.engine(c.rec)
			e.dieAfter.Store(7)
			r := h.post("/v1/completions", c.ask)
			if r.err == nil || !strings.Contains(r.body, `data: {"error":`) || strings.Contains(r.body, "[DONE]") {
				t.Errorf("%v %q", r.err, r.body)
			}
		})
	}
}

// A place that is free is given to the key with the least running; who cannot
// wait is told when to come again.
func TestWaitingForAPlace(t *testing.T) {
	h := newHouse(t, Config{Limits: Limits{Waiting: 3}})
	arrived, leave := make(chan string, 10), make(chan struct{})
	url := server(t, "m", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		arrived <- string(b)
		<-leave
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	})
	h.engine(control.EngineRecord{ID: "a", URL: url, Parallel: 1})
	done := make(chan int, 10)
	ask := func(key, what string, waiting int) {
		go func() {
			done <- h.keyed(key, `{"model":"m","what":"`+what+`"}`).status
		}()
		if waiting >= 0 {
			h.until(func() bool {
				h.room.mu.Lock()
				defer h.room.mu.Unlock()
				q := h.room.mu.queues["m"]
				return q != nil && len(q.waiting) == waiting
			})
		}
	}
	ask("a", "first", -1)
	if got := <-arrived; !strings.Contains(got, "first") {
		t.Fatal(got)
	}
	ask("a", "second", 1)
	ask("a", "third", 2)
	ask("b", "other", 3)
	if r := h.keyed("c", `{"model":"m"}`); r.status != 429 || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, "queue_full") {
		t.Errorf("beyond the queue: %d %v %s", r.status, r.header, r.body)
	}
	for _, want := range []string{"other", "second", "third"} {
		leave <- struct{}{}
		if got := <-arrived; !strings.Contains(got, want) {
			t.Errorf("next came %s, want %s", got, want)
		}
	}
	leave <- struct{}{}
	for range 4 {
		if status := <-done; status != 200 {
			t.Errorf("status %d", status)
		}
	}
}

func (h *house) keyed(key, body string) reply {
	return h.post("/v1/chat/completions", body, "X-Test-Key", key)
}
