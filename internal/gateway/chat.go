package gateway

import (
	"context"
	"net/http"
	"strings"

	"hecate/internal/gateway/openai"
	"hecate/internal/sampling"
	"hecate/internal/stage"
)

// chatCompletions serves POST /v1/chat/completions.
func (g *Gateway) chatCompletions(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	req, fault := openai.DecodeChat(body)
	if fault != nil {
		return fault
	}
	model, fault := g.lookup(req.Model)
	if fault != nil {
		return fault
	}
	req.FixSeed()
	id := newID("chatcmpl-")
	word := func(m *Model) (wish, *openai.Error) { return g.chatWish(r.Context(), id, req, m) }
	asked, fault := word(model)
	if fault != nil {
		return fault
	}
	asked.reword = word
	return g.reply(w, r, asked, &req.Common, &chatReply{req: req})
}

// chatWish puts a request to a model.
func (g *Gateway) chatWish(ctx context.Context, id string, req *openai.ChatRequest, model *Model) (wish, *openai.Error) {
	prompt, err := model.Text.EncodeChat(ctx, turns(req.Messages))
	if err != nil {
		return wish{}, openai.BadRequest("messages", "invalid_value", "The messages do not fit this model's chat template: %s.", err)
	}
	out := wish{id: id, model: model, prompt: prompt, maxTokens: req.MaxTokens, stops: req.Stop}
	for i := range req.Choices() {
		p, fault := req.Params(i)
		if fault != nil {
			return out, fault
		}
		out.params = append(out.params, p)
	}
	var fault *openai.Error
	out.params, fault = checkBias(out.params, model)
	return out, fault
}

func turns(messages []openai.Message) []Turn {
	out := make([]Turn, len(messages))
	for i, m := range messages {
		role := m.Role
		if role == "developer" { // OpenAI's newer name for it
			role = "system"
		}
		out[i] = Turn{Role: role, Content: m.Content.Text, Name: m.Name}
	}
	return out
}

// checkBias refuses token ids that the model does not have.
func checkBias(params []sampling.Params, m *Model) ([]sampling.Params, *openai.Error) {
	for id := range params[0].LogitBias {
		if int(id) >= m.Text.Vocabulary() {
			return nil, openai.BadRequest("logit_bias", "invalid_value", "'logit_bias' names token %d, but this model has %d.", id, m.Text.Vocabulary())
		}
	}
	return params, nil
}

// chatReply words a generation as a chat completion.
type chatReply struct{ req *openai.ChatRequest }

func (c *chatReply) whole(gen *generation, parts []gathered) any {
	out := openai.ChatCompletion{
		ID: gen.id, Object: "chat.completion", Created: gen.created.Unix(), Model: gen.model.Record.ID,
		Usage: gen.usage(), Hecate: gen.hecate(),
	}
	for i, p := range parts {
		out.Choices = append(out.Choices, openai.ChatChoice{
			Index: i, Message: openai.AnswerMessage{Role: "assistant", Content: p.text},
			Logprobs: c.logprobs(gen, p.tokens), FinishReason: p.finish,
		})
	}
	return out
}

func (c *chatReply) chunk(gen *generation) openai.ChatChunk {
	return openai.ChatChunk{ID: gen.id, Object: "chat.completion.chunk", Created: gen.created.Unix(), Model: gen.model.Record.ID, Choices: []openai.ChunkChoice{}}
}

func (c *chatReply) first(gen *generation, choice int) any {
	chunk, empty := c.chunk(gen), ""
	chunk.Choices = append(chunk.Choices, openai.ChunkChoice{Index: choice, Delta: openai.Delta{Role: "assistant", Content: &empty}})
	return chunk
}

func (c *chatReply) piece(gen *generation, p piece) any {
	chunk := c.chunk(gen)
	chunk.Choices = append(chunk.Choices, openai.ChunkChoice{Index: p.choice, Delta: openai.Delta{Content: &p.text}, Logprobs: c.logprobs(gen, p.tokens)})
	return chunk
}

func (c *chatReply) finish(gen *generation, p piece, last bool) any {
	chunk := c.chunk(gen)
	chunk.Choices = append(chunk.Choices, openai.ChunkChoice{Index: p.choice, FinishReason: &p.finish})
	if last {
		h := gen.hecate()
		chunk.Hecate = &h
	}
	return chunk
}

func (c *chatReply) usage(gen *generation) any {
	if !c.req.IncludeUsage() {
		return nil
	}
	chunk, u, h := c.chunk(gen), gen.usage(), gen.hecate()
	chunk.Usage, chunk.Hecate = &u, &h
	return chunk
}

func (c *chatReply) logprobs(gen *generation, tokens []stage.Token) *openai.ChatLogprobs {
	if !c.req.Logprobs {
		return nil
	}
	out := &openai.ChatLogprobs{Content: []openai.TokenLogprob{}}
	for _, t := range tokens {
		entry := openai.TokenLogprob{Scored: scored(gen.model.Text, t.ID, t.Logprob), Top: []openai.Scored{}}
		for _, a := range t.Top {
			entry.Top = append(entry.Top, scored(gen.model.Text, a.ID, a.Logprob))
		}
		out.Content = append(out.Content, entry)
	}
	return out
}

func scored(text Text, id int32, logprob float32) openai.Scored {
	b := text.Bytes(id)
	s := openai.Scored{Token: strings.ToValidUTF8(string(b), "\uFFFD"), Logprob: float64(logprob), Bytes: make([]int, len(b))}
	for i, x := range b {
		s.Bytes[i] = int(x)
	}
	return s
}

// waitFor is what a handler does until all choices are finished.
func waitFor(ctx context.Context, gen *generation, each func(piece) error) error {
	for open := len(gen.choices); open > 0; {
		select {
		case p := <-gen.pieces:
			if p.err != nil {
				return p.err
			}
			if err := each(p); err != nil {
				return err
			}
			if p.finish != "" {
				open--
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
