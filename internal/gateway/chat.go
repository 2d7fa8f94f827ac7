package gateway

import (
	"net/http"
	"strings"

	"hecate/internal/gateway/openai"
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
	model, fault := g.lookup(r.Context(), req.Model)
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

// chatReply words a generation as a chat completion.
type chatReply struct{ req *openai.ChatRequest }

func (c *chatReply) whole(gen *generation, parts []gathered) any {
	out := openai.ChatCompletion{
		ID: gen.id, Object: "chat.completion", Created: gen.created.Unix(), Model: gen.model.Record.ID,
		Usage: gen.usage(), Hecate: gen.hecate(),
	}
	for i, p := range parts {
		out.Choices = append(out.Choices, openai.ChatChoice{
			Index: i, Message: openai.AnswerMessage{Role: "assistant", Content: p.text, ToolCalls: p.calls},
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
	delta := openai.Delta{ToolCalls: p.calls}
	if p.text != "" || len(p.calls) == 0 {
		delta.Content = &p.text
	}
	chunk.Choices = append(chunk.Choices, openai.ChunkChoice{Index: p.choice, Delta: delta, Logprobs: c.logprobs(gen, p.tokens)})
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
