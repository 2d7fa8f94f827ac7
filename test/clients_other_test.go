//go:build !noengine

package test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"hecate/test/harness"
)

// otherGoClient uses the swarm with the Go client that came before OpenAI's own;
// it reads streams line by line in a way of its own.
func otherGoClient(t *testing.T, s *harness.Swarm) {
	c := goOpenAI(s)
	ctx := context.Background()
	q := plainTale(40)
	whole, err := c.CreateChatCompletion(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	text, finish, err := followPlain(ctx, c, q)
	if err != nil || text != whole.Choices[0].Message.Content || finish != goopenai.FinishReasonLength {
		t.Errorf("streamed %q (%s, %v), want %q", text, finish, err, whole.Choices[0].Message.Content)
	}
	list, err := c.ListModels(ctx)
	if err != nil || len(list.Models) != 1 || list.Models[0].ID != harness.Model {
		t.Errorf("%+v, %v", list, err)
	}
	q.Model = "gpt-x"
	_, err = c.CreateChatCompletion(ctx, q)
	var fault *goopenai.APIError
	if !errors.As(err, &fault) || fault.HTTPStatusCode != http.StatusNotFound || fault.Code != "model_not_found" {
		t.Errorf("%v, want 404 model_not_found", err)
	}
}

func goOpenAI(s *harness.Swarm) *goopenai.Client {
	config := goopenai.DefaultConfig("none needed")
	config.BaseURL = s.URL + "/v1"
	return goopenai.NewClientWithConfig(config)
}

func plainTale(tokens int) goopenai.ChatCompletionRequest {
	return goopenai.ChatCompletionRequest{
		Model:       harness.Model,
		Messages:    []goopenai.ChatCompletionMessage{{Role: goopenai.ChatMessageRoleUser, Content: harness.Story}},
		MaxTokens:   tokens,
		Temperature: 1e-9, // this client leaves out a zero
	}
}

func followPlain(ctx context.Context, c *goopenai.Client, q goopenai.ChatCompletionRequest) (text string, finish goopenai.FinishReason, err error) {
	stream, err := c.CreateChatCompletionStream(ctx, q)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = stream.Close() }()
	var all strings.Builder
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all.String(), finish, nil
		}
		if err != nil {
			return all.String(), finish, err
		}
		for _, choice := range event.Choices {
			all.WriteString(choice.Delta.Content)
			if choice.FinishReason != "" {
				finish = choice.FinishReason
			}
		}
	}
}
