//go:build !noengine

package test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"hecate/internal/report"
	"hecate/test/harness"
)

// TestOfficialGoClient uses a swarm as people use OpenAI, with OpenAI's own client.
func TestOfficialGoClient(t *testing.T) {
	s := harness.Up(t)
	c := officialClient(s)
	t.Run("chat", func(t *testing.T) { clientChat(t, c) })
	t.Run("stream", func(t *testing.T) { clientStream(t, c) })
	t.Run("choices of a stream", func(t *testing.T) { clientChoices(t, c) })
	t.Run("completions", func(t *testing.T) { clientCompletions(t, c) })
	t.Run("models", func(t *testing.T) { clientModels(t, c) })
	t.Run("stop strings", func(t *testing.T) { clientStops(t, c) })
	t.Run("seed", func(t *testing.T) { clientSeed(t, c) })
	t.Run("logprobs", func(t *testing.T) { clientLogprobs(t, c) })
	t.Run("errors", func(t *testing.T) { clientErrors(t, c) })
	t.Run("cancel", func(t *testing.T) { clientCancel(t, s, c) })
	t.Run("another client", func(t *testing.T) { otherGoClient(t, s) })
	t.Run("wire", func(t *testing.T) { checkWire(t, s) })
}

// officialClient asks once: a test wants to see the first answer.
func officialClient(s *harness.Swarm) openai.Client {
	return openai.NewClient(option.WithBaseURL(s.URL+"/v1"), option.WithAPIKey("none needed"), option.WithMaxRetries(0))
}

// tale asks for a long greedy answer.
func tale(tokens int64) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:               harness.Model,
		Messages:            []openai.ChatCompletionMessageParamUnion{openai.UserMessage(harness.Story)},
		MaxCompletionTokens: openai.Int(tokens),
		Temperature:         openai.Float(0),
	}
}

func ask(t *testing.T, c openai.Client, p openai.ChatCompletionNewParams) *openai.ChatCompletion {
	t.Helper()
	a, err := c.Chat.Completions.New(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// follow reads a stream to its end, as the client's manual says. each may be nil.
func follow(ctx context.Context, c openai.Client, p openai.ChatCompletionNewParams, each func(openai.ChatCompletionChunk)) (openai.ChatCompletionAccumulator, error) {
	stream := c.Chat.Completions.NewStreaming(ctx, p)
	defer func() { _ = stream.Close() }()
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		chunk := stream.Current()
		if !acc.AddChunk(chunk) {
			return acc, errors.New("the client cannot put the chunks together")
		}
		if each != nil {
			each(chunk)
		}
	}
	return acc, stream.Err()
}

func clientChat(t *testing.T, c openai.Client) {
	a := ask(t, c, openai.ChatCompletionNewParams{
		Model: harness.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage("You are a helpful assistant."),
			openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{openai.TextContentPart("What is the capital "), openai.TextContentPart("of France?")}),
		},
		Temperature: openai.Float(0),
	})
	if got := a.Choices[0]; !strings.Contains(got.Message.Content, "Paris") || got.FinishReason != "stop" || got.Message.Role != "assistant" {
		t.Errorf("%q (%s)", got.Message.Content, got.FinishReason)
	}
	if u := a.Usage; u.PromptTokens == 0 || u.CompletionTokens == 0 || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		t.Errorf("usage %+v", u)
	}
	if a.ID == "" || a.Created == 0 || a.Model != harness.Model || a.Object != "chat.completion" {
		t.Errorf("%+v", a)
	}
}

func clientStream(t *testing.T, c openai.Client) {
	whole := ask(t, c, tale(60))
	p := tale(60)
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	var chunks []openai.ChatCompletionChunk
	acc, err := follow(context.Background(), c, p, func(chunk openai.ChatCompletionChunk) { chunks = append(chunks, chunk) })
	if err != nil {
		t.Fatal(err)
	}
	if got, want := acc.Choices[0].Message.Content, whole.Choices[0].Message.Content; got != want {
		t.Errorf("streamed %q, want %q", got, want)
	}
	if acc.Choices[0].FinishReason != "length" || acc.Usage.CompletionTokens != 60 || acc.Usage.TotalTokens != whole.Usage.TotalTokens {
		t.Errorf("%s, usage %+v", acc.Choices[0].FinishReason, acc.Usage)
	}
	if first := chunks[0].Choices[0].Delta; first.Role != "assistant" || first.Content != "" {
		t.Errorf("the first delta is %+v, want the role", first)
	}
	last := chunks[len(chunks)-1]
	if len(last.Choices) != 0 || last.Usage.TotalTokens == 0 {
		t.Errorf("the last chunk is %s, want usage without choices", last.RawJSON())
	}
	for _, chunk := range chunks {
		if chunk.ID != chunks[0].ID || chunk.Created != chunks[0].Created {
			t.Errorf("a chunk is called %s of %d, the first %s of %d", chunk.ID, chunk.Created, chunks[0].ID, chunks[0].Created)
		}
	}
}

func clientChoices(t *testing.T, c openai.Client) {
	p := tale(20)
	p.N, p.Seed, p.Temperature = openai.Int(3), openai.Int(5), openai.Float(0.9)
	whole := ask(t, c, p)
	acc, err := follow(context.Background(), c, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(acc.Choices) != 3 || len(whole.Choices) != 3 {
		t.Fatalf("%d choices streamed, %d whole, want 3", len(acc.Choices), len(whole.Choices))
	}
	for i := range 3 {
		if acc.Choices[i].Index != int64(i) || acc.Choices[i].Message.Content != whole.Choices[i].Message.Content {
			t.Errorf("choice %d: streamed %q, whole %q", i, acc.Choices[i].Message.Content, whole.Choices[i].Message.Content)
		}
	}
	if acc.Choices[0].Message.Content == acc.Choices[1].Message.Content {
		t.Error("two choices are the same")
	}
}

func clientCompletions(t *testing.T, c openai.Client) {
	p := openai.CompletionNewParams{
		Model:       harness.Model,
		Prompt:      openai.CompletionNewParamsPromptUnion{OfString: openai.String("Once upon a time, there was a kind bear")},
		MaxTokens:   openai.Int(12),
		Temperature: openai.Float(0),
		Logprobs:    openai.Int(2),
	}
	whole, err := c.Completions.New(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if whole.Choices[0].Text == "" || whole.Choices[0].FinishReason != "length" || whole.Usage.CompletionTokens != 12 {
		t.Errorf("%s", whole.RawJSON())
	}
	lp := whole.Choices[0].Logprobs
	if strings.Join(lp.Tokens, "") != whole.Choices[0].Text || len(lp.TopLogprobs) != 12 {
		t.Errorf("log-probabilities of %q for the text %q", lp.Tokens, whole.Choices[0].Text)
	}
	for i, token := range lp.Tokens {
		if at := int(lp.TextOffset[i]); !strings.HasPrefix(whole.Choices[0].Text[at:], token) {
			t.Errorf("token %q is not at %d of %q", token, at, whole.Choices[0].Text)
		}
	}
	stream := c.Completions.NewStreaming(context.Background(), p)
	var text strings.Builder
	var finish string
	for stream.Next() {
		for _, choice := range stream.Current().Choices {
			text.WriteString(choice.Text)
			finish += string(choice.FinishReason)
		}
	}
	if stream.Err() != nil || text.String() != whole.Choices[0].Text || finish != "length" {
		t.Errorf("streamed %q (%s, %v), want %q", text.String(), finish, stream.Err(), whole.Choices[0].Text)
	}
}

func clientModels(t *testing.T, c openai.Client) {
	page, err := c.Models.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Data) != 1 || page.Data[0].ID != harness.Model || page.Data[0].Created == 0 || page.Data[0].OwnedBy == "" {
		t.Errorf("%s", page.RawJSON())
	}
	m, err := c.Models.Get(context.Background(), harness.Model)
	if err != nil || m.Created != page.Data[0].Created {
		t.Errorf("%+v, %v", m, err)
	}
	_, err = c.Models.Get(context.Background(), "nobody/knows")
	wantError(t, err, http.StatusNotFound, "model_not_found")
}

func clientStops(t *testing.T, c openai.Client) {
	words := strings.SplitAfter(ask(t, c, tale(60)).Choices[0].Message.Content, " ")
	stop := words[7] + words[8][:1] // it begins in one token and ends in another
	p := tale(60)
	p.Stop = openai.ChatCompletionNewParamsStopUnion{OfStringArray: []string{"@@", stop}}
	acc, err := follow(context.Background(), c, p, nil)
	want, _, _ := strings.Cut(strings.Join(words, ""), stop)
	if err != nil || acc.Choices[0].Message.Content != want || acc.Choices[0].FinishReason != "stop" {
		t.Errorf("%q (%s, %v), want %q", acc.Choices[0].Message.Content, acc.Choices[0].FinishReason, err, want)
	}
	p.Stop = openai.ChatCompletionNewParamsStopUnion{OfString: openai.String(stop)}
	if a := ask(t, c, p); a.Choices[0].Message.Content != want {
		t.Errorf("%q, want %q", a.Choices[0].Message.Content, want)
	}
}

func clientSeed(t *testing.T, c openai.Client) {
	told := map[string]int{}
	for _, seed := range []int64{1, 1, 2, 3} {
		p := tale(30)
		p.Temperature, p.Seed = openai.Float(0.9), openai.Int(seed)
		told[ask(t, c, p).Choices[0].Message.Content]++
	}
	if len(told) < 2 || len(told) > 3 {
		t.Errorf("seeds 1, 1, 2 and 3 gave %d texts: %v", len(told), told)
	}
}

func clientLogprobs(t *testing.T, c openai.Client) {
	p := tale(10)
	p.Logprobs, p.TopLogprobs = openai.Bool(true), openai.Int(3)
	a := ask(t, c, p)
	var text strings.Builder
	for _, e := range a.Choices[0].Logprobs.Content {
		text.WriteString(e.Token)
		if len(e.TopLogprobs) != 3 || e.Logprob > 0 || e.TopLogprobs[0].Logprob != e.Logprob {
			t.Errorf("%s", e.RawJSON())
		}
	}
	if text.String() != a.Choices[0].Message.Content {
		t.Errorf("the tokens spell %q, the text is %q", text.String(), a.Choices[0].Message.Content)
	}
	acc, err := follow(context.Background(), c, p, nil)
	if err != nil || len(acc.Choices[0].Logprobs.Content) != len(a.Choices[0].Logprobs.Content) {
		t.Fatalf("%d log-probabilities streamed, want %d (%v)", len(acc.Choices[0].Logprobs.Content), len(a.Choices[0].Logprobs.Content), err)
	}
	for i, e := range acc.Choices[0].Logprobs.Content {
		if math.Abs(e.Logprob-a.Choices[0].Logprobs.Content[i].Logprob) > 1e-6 {
			t.Errorf("token %d: %g streamed, %g whole", i, e.Logprob, a.Choices[0].Logprobs.Content[i].Logprob)
		}
	}
}

// wantError wants the client's own typed error.
func wantError(t *testing.T, err error, status int, code string) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != status || e.Code != code {
		t.Errorf("%v, want an error %d %s", err, status, code)
	}
}

func clientErrors(t *testing.T, c openai.Client) {
	bg := context.Background()
	// With retries: a client's mistake must not be tried again.
	tries := 0
	count := option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		tries++
		return next(r)
	})
	p := tale(5)
	p.Model = "gpt-x"
	_, err := c.Chat.Completions.New(bg, p, count, option.WithMaxRetries(3))
	wantError(t, err, http.StatusNotFound, "model_not_found")
	_, err = follow(bg, c, p, nil)
	wantError(t, err, http.StatusNotFound, "model_not_found")
	p = tale(5)
	p.Temperature = openai.Float(9)
	_, err = c.Chat.Completions.New(bg, p, count, option.WithMaxRetries(3))
	wantError(t, err, http.StatusBadRequest, "invalid_value")
	p = tale(5)
	p.Messages = append(p.Messages, openai.UserMessage(strings.Repeat("word ", 2000)))
	_, err = c.Chat.Completions.New(bg, p, count, option.WithMaxRetries(3))
	wantError(t, err, http.StatusBadRequest, "context_length_exceeded")
	p = tale(5)
	p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "f"})}
	_, err = c.Chat.Completions.New(bg, p, count, option.WithMaxRetries(3))
	wantError(t, err, http.StatusBadRequest, "unsupported_parameter")
	if tries != 4 {
		t.Errorf("four mistakes were sent %d times", tries)
	}
}

func clientCancel(t *testing.T, s *harness.Swarm, c openai.Client) {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	pieces := 0
	_, err := follow(ctx, c, tale(400), func(openai.ChatCompletionChunk) {
		if pieces++; pieces == 5 {
			leave()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after %d pieces: %v, want the cancelled context", pieces, err)
	}
	s.Await("every stage is free again", 2*reportDelay, func() bool {
		return !slices.ContainsFunc(s.Status().Nodes, func(n report.Node) bool { return n.Sessions != 0 })
	})
}
