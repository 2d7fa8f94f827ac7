package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"hecate/internal/gateway/calls"
	"hecate/internal/tokens"
)

// language is a model's vocabulary and chat template as a Text.
type language struct {
	*tokens.Tokenizer
	calls calls.Style
}

// openText reads the language of a GGUF file.
func openText(path string) (Text, error) {
	source, err := tokens.OpenSource(path)
	if err != nil {
		return nil, err
	}
	t, err := tokens.New(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return language{t, styleOf(t)}, nil
}

// styleOf reads how calls are written from the template that is in use.
func styleOf(t *tokens.Tokenizer) calls.Style {
	if t.Template().Name != "gguf" {
		return calls.Style{} // one of ours, without tools
	}
	return calls.StyleOf(t.Source().ChatTemplate, t.Control)
}

// Kinds of pooling, as files number them.
const poolsMean, poolsLast = 1, 3

func (l language) Pooling() Pooling {
	s := l.Source()
	p := Pooling{Width: int(s.Width)}
	switch {
	case s.Pooling == nil || *s.Pooling == 0:
		p.Kind = PoolMean
	case *s.Pooling == poolsMean:
		p.Kind, p.Declared = PoolMean, true
	case *s.Pooling == poolsLast:
		p.Kind, p.Declared = PoolLast, true
	}
	return p
}

func (l language) Name(token int32) string { return l.TokenName(token) }

func (l language) Calls() calls.Style { return l.calls }

func (l language) EncodeChat(ctx context.Context, turns []Turn, tools json.RawMessage) ([]int32, error) {
	messages := make([]tokens.Message, len(turns))
	for i, t := range turns {
		messages[i] = tokens.Message{Role: t.Role, Content: t.Content, Name: t.Name, ToolCalls: t.Calls, ToolCallID: t.CallID}
	}
	return l.Tokenizer.EncodeChat(ctx, tokens.Chat{Messages: messages, Tools: tools, Generate: true})
}

func (l language) Vocabulary() int { return l.Size() }

func (l language) Bytes(token int32) []byte { return l.TokenBytes(token) }

func (l language) Speak(stops []string) (Speaker, error) {
	s, err := l.NewStream(tokens.StreamOptions{Stops: stops})
	if err != nil {
		return nil, err
	}
	return speaker{s}, nil
}

type speaker struct{ *tokens.Stream }

func (s speaker) Add(token int32) (string, bool) {
	p := s.Push(token)
	return p.Text, p.Finish == tokens.FinishStop
}

func (s speaker) Rest() string { return s.Close(tokens.FinishLength).Text }
