//go:build !noengine

package test

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	goopenai "github.com/sashabaranov/go-openai"

	"hecate/internal/chaos"
	"hecate/test/harness"
)

const counted = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"

// faultyEngine registers an upstream with one fault; its model has the names given.
func faultyEngine(t *testing.T, s *harness.Swarm, name, fault string, models ...string) *chaos.Upstream {
	t.Helper()
	u, err := chaos.New([]string{fault}, chaos.Options{Delay: 50 * time.Millisecond, Period: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(u)
	t.Cleanup(srv.Close)
	if err := u.SetFaults([]string{"none"}); err != nil { // it is to be registered first
		t.Fatal(err)
	}
	args := []string{"engine", "add", name, srv.URL, "--first-byte", "2s", "--silence", "2s"}
	for _, m := range models {
		args = append(args, "--model", m+"=faulty")
	}
	s.Do(args...)
	s.Await("engine "+name, time.Minute, func() bool {
		code := s.Get("/v1/models/"+models[0], &struct{}{})
		return code == 200
	})
	if err := u.SetFaults([]string{fault}); err != nil {
		t.Fatal(err)
	}
	return u
}

// Faults at which the answer is the client's to hear of, even where another engine
// stands by; and those that strike after the first content of a stream.
var (
	clientsOwn = []string{"context-length", "content-filter"}
	midStream  = []string{"cut", "stall", "malformed", "no-done"}
)

// TestEnginesFailAsNamed meets every named fault with the Go clients, through the
// program: the full text or an error, and never a shortened answer; with a second
// engine the full text, as long as nothing had been said.
func TestEnginesFailAsNamed(t *testing.T) {
	s := harness.Serve(t)
	var both []string
	for _, f := range chaos.Faults() {
		both = append(both, "two-"+f.Name)
	}
	for _, f := range chaos.Faults() {
		faultyEngine(t, s, "a-"+f.Name, f.Name, "alone-"+f.Name, "two-"+f.Name)
	}
	faultyEngine(t, s, "z-honest", "none", both...)
	official, other := officialClient(s), goOpenAI(s)
	for _, f := range chaos.Faults() {
		for _, model := range []string{"alone-" + f.Name, "two-" + f.Name} {
			two := strings.HasPrefix(model, "two-")
			for name, ask := range map[string]func() (string, string, error){
				"openai-go":         func() (string, string, error) { return officialWhole(official, model) },
				"openai-go, stream": func() (string, string, error) { return officialStream(official, model) },
				"go-openai":         func() (string, string, error) { return otherWhole(other, model) },
				"go-openai, stream": func() (string, string, error) { return otherStream(other, model) },
			} {
				t.Run(model+"/"+name, func(t *testing.T) {
					t.Parallel()
					text, finish, err := ask()
					streamed := strings.HasSuffix(name, "stream")
					switch {
					case slices.Contains(clientsOwn, f.Name):
						if err == nil && !(two && text == counted) { // the other one may have been asked first
							t.Errorf("no error, but %q", text)
						}
					case f.Name == "filtered":
						if err == nil && finish != "content_filter" && !(two && text == counted) {
							t.Errorf("finish reason %q", finish)
						}
					case err == nil && (text != counted || finish != "stop"):
						t.Errorf("a shortened answer without an error: %q, finish reason %q", text, finish)
					case err != nil && two && !(streamed && slices.Contains(midStream, f.Name)):
						t.Errorf("the other engine did not answer: %v", err)
					case err != nil && !strings.HasPrefix(counted, text):
						t.Errorf("before the error came %q", text)
					}
				})
			}
		}
	}
}

func enginesAsk(model string) openai.ChatCompletionNewParams {
	p := tale(0)
	p.Model, p.MaxCompletionTokens = model, openai.ChatCompletionNewParams{}.MaxCompletionTokens
	return p
}

func officialWhole(c openai.Client, model string) (text, finish string, err error) {
	a, err := c.Chat.Completions.New(context.Background(), enginesAsk(model))
	if err != nil {
		return "", "", err
	}
	if len(a.Choices) == 0 {
		return "", "", nil
	}
	return a.Choices[0].Message.Content, a.Choices[0].FinishReason, nil
}

func officialStream(c openai.Client, model string) (text, finish string, err error) {
	_, err = follow(context.Background(), c, enginesAsk(model), func(chunk openai.ChatCompletionChunk) {
		for _, choice := range chunk.Choices {
			text, finish = text+choice.Delta.Content, finish+choice.FinishReason
		}
	})
	return text, finish, err
}

func enginesPlain(model string) goopenai.ChatCompletionRequest {
	q := plainTale(0)
	q.Model = model
	return q
}

func otherWhole(c *goopenai.Client, model string) (text, finish string, err error) {
	a, err := c.CreateChatCompletion(context.Background(), enginesPlain(model))
	if err != nil || len(a.Choices) == 0 {
		return "", "", err
	}
	return a.Choices[0].Message.Content, string(a.Choices[0].FinishReason), nil
}

func otherStream(c *goopenai.Client, model string) (text, finish string, err error) {
	text, reason, err := followPlain(context.Background(), c, enginesPlain(model))
	return text, string(reason), err
}

// TestASwarmIsAnEngine puts one gateway in front of two whole swarms: the same text
// as each gives, with both, with one, and when one dies in the middle.
func TestASwarmIsAnEngine(t *testing.T) {
	front := harness.Serve(t)
	one := harness.Up(t, "--nodes", "1", "--copies", "1")
	two := harness.Up(t, "--nodes", "1", "--copies", "1")
	front.Do("engine", "add", "one", one.URL, "--resume", "--model", "demo="+harness.Model)
	front.Do("engine", "add", "two", two.URL, "--resume", "--model", "demo="+harness.Model)
	front.Await("the swarms behind", time.Minute, func() bool {
		var views []struct {
			State   string
			Resumes map[string]bool
		}
		front.Get("/v1/swarm/engines", &views)
		return len(views) == 2 && views[0].State == "up" && views[1].State == "up" && len(views[0].Resumes) > 0 && len(views[1].Resumes) > 0
	})
	p := tale(60)
	want := ask(t, officialClient(one), p).Choices[0].Message.Content
	p.Model = "demo"
	c := officialClient(front)
	if got := ask(t, c, p).Choices[0].Message.Content; got != want {
		t.Errorf("through the gateway %q, want %q", got, want)
	}
	answer, err := follow(context.Background(), c, p, nil)
	if err != nil || answer.Choices[0].Message.Content != want {
		t.Errorf("streamed %v, want %q", err, want)
	}
	ends := ""
	_, err = follow(context.Background(), c, p, func(chunk openai.ChatCompletionChunk) {
		if len(chunk.Choices) > 0 && ends == "" && chunk.Choices[0].Delta.Content != "" {
			ends = "killed"
			killWhoAnswers(t, front, one, two)
		}
		for _, choice := range chunk.Choices {
			ends += choice.FinishReason
		}
	})
	if err == nil && ends != "killedlength" && ends != "killedstop" {
		t.Errorf("a stream of a dead swarm ended cleanly: %q", ends)
	}
	if got := ask(t, c, p).Choices[0].Message.Content; got != want {
		t.Errorf("with the other swarm %q, want %q", got, want)
	}
}

// killWhoAnswers kills the gateway of the swarm at which a request runs.
func killWhoAnswers(t *testing.T, front *harness.Swarm, swarms ...*harness.Swarm) {
	t.Helper()
	var views []struct {
		Record  struct{ ID string }
		Running int
	}
	front.Get("/v1/swarm/engines", &views)
	for i, v := range views {
		if v.Running > 0 {
			swarms[i].Kill()
			return
		}
	}
	swarms[0].Kill() // it has answered already
}
