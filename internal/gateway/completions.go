package gateway

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"hecate/internal/gateway/openai"
	"hecate/internal/stage"
)

// completions serves POST /v1/completions.
func (g *Gateway) completions(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	req, fault := openai.DecodeCompletion(body)
	if fault != nil {
		return fault
	}
	model, fault := g.lookup(r.Context(), req.Model)
	if fault != nil {
		return fault
	}
	req.FixSeed()
	if req.MaxTokens == nil {
		sixteen := 16 // OpenAI's default for this endpoint
		req.MaxTokens = &sixteen
	}
	id := newID("cmpl-")
	asked, fault := completionWish(id, req, model)
	if fault != nil {
		return fault
	}
	asked.reword = func(m *Model) (wish, *openai.Error) {
		if req.Prompt.Tokens != nil {
			return wish{}, openai.BadRequest("prompt", "unsupported_value", "The prompt is token ids of the model %s; to another model they mean something else.", req.Model)
		}
		return completionWish(id, req, m)
	}
	reply := &completionReply{req: req, offset: make([]int, req.Choices())}
	if req.Echo {
		reply.echo = spoken(req.Prompt, model)
	}
	return g.reply(w, r, asked, &req.Common, reply)
}

// completionWish puts a request to a model.
func completionWish(id string, req *openai.CompletionRequest, model *Model) (wish, *openai.Error) {
	prompt, fault := promptTokens(req.Prompt, model)
	if fault != nil {
		return wish{}, fault
	}
	out := wish{id: id, model: model, prompt: prompt, maxTokens: req.MaxTokens, stops: req.Stop}
	for i := range req.Choices() {
		p, fault := req.Params(i)
		if fault != nil {
			return out, fault
		}
		out.params = append(out.params, p)
	}
	out.params, fault = checkBias(out.params, model)
	return out, fault
}

func promptTokens(p openai.Prompt, m *Model) ([]int32, *openai.Error) {
	if p.Tokens == nil {
		ids, err := m.Text.Encode(p.Text)
		if err != nil {
			return nil, openai.BadRequest("prompt", "invalid_value", "The prompt cannot be read: %s.", err)
		}
		if len(ids) == 0 {
			return nil, openai.BadRequest("prompt", "invalid_value", "The prompt is empty.")
		}
		return ids, nil
	}
	if len(p.Tokens) == 0 {
		return nil, openai.BadRequest("prompt", "invalid_value", "The prompt is empty.")
	}
	return p.Tokens, knownTokens("prompt", p.Tokens, m)
}

// spoken is the prompt as text.
func spoken(p openai.Prompt, m *Model) string {
	if p.Tokens == nil {
		return p.Text
	}
	var b []byte
	for _, id := range p.Tokens {
		b = append(b, m.Text.Bytes(id)...)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// completionReply words a generation in the older API.
type completionReply struct {
	req    *openai.CompletionRequest
	echo   string
	offset []int // characters of text so far, by choice
}

func (c *completionReply) shell(gen *generation) openai.Completion {
	return openai.Completion{ID: gen.id, Object: "text_completion", Created: gen.created.Unix(), Model: gen.model.Record.ID, Choices: []openai.CompletionChoice{}}
}

func (c *completionReply) whole(gen *generation, parts []gathered) any {
	out, u, h := c.shell(gen), gen.usage(), gen.hecate()
	out.Usage, out.Hecate = &u, &h
	for i, p := range parts {
		out.Choices = append(out.Choices, openai.CompletionChoice{Index: i, Text: c.echo + p.text, Logprobs: c.logprobs(gen, i, p.tokens), FinishReason: &p.finish})
	}
	return out
}

func (c *completionReply) first(gen *generation, choice int) any {
	if c.echo == "" {
		return nil
	}
	out := c.shell(gen)
	out.Choices = append(out.Choices, openai.CompletionChoice{Index: choice, Text: c.echo})
	return out
}

func (c *completionReply) piece(gen *generation, p piece) any {
	out := c.shell(gen)
	out.Choices = append(out.Choices, openai.CompletionChoice{Index: p.choice, Text: p.text, Logprobs: c.logprobs(gen, p.choice, p.tokens)})
	return out
}

func (c *completionReply) finish(gen *generation, p piece, last bool) any {
	out := c.shell(gen)
	out.Choices = append(out.Choices, openai.CompletionChoice{Index: p.choice, FinishReason: &p.finish})
	if last {
		h := gen.hecate()
		out.Hecate = &h
	}
	return out
}

func (c *completionReply) usage(gen *generation) any {
	if !c.req.IncludeUsage() {
		return nil
	}
	out, u, h := c.shell(gen), gen.usage(), gen.hecate()
	out.Usage, out.Hecate = &u, &h
	return out
}

func (c *completionReply) logprobs(gen *generation, choice int, tokens []stage.Token) *openai.CompletionLogprobs {
	if c.req.Logprobs == nil {
		return nil
	}
	out := &openai.CompletionLogprobs{Tokens: []string{}, TokenLogprobs: []float64{}, TopLogprobs: []map[string]float64{}, TextOffset: []int{}}
	for _, t := range tokens {
		b := gen.model.Text.Bytes(t.ID)
		out.Tokens = append(out.Tokens, strings.ToValidUTF8(string(b), "\uFFFD"))
		out.TokenLogprobs = append(out.TokenLogprobs, float64(t.Logprob))
		out.TextOffset = append(out.TextOffset, utf8.RuneCountInString(c.echo)+c.offset[choice])
		c.offset[choice] += characters(b)
		top := map[string]float64{out.Tokens[len(out.Tokens)-1]: float64(t.Logprob)} // OpenAI's holds the chosen one too
		for _, a := range t.Top {
			top[strings.ToValidUTF8(string(gen.model.Text.Bytes(a.ID)), "\uFFFD")] = float64(a.Logprob)
		}
		out.TopLogprobs = append(out.TopLogprobs, top)
	}
	return out
}

// characters counts the characters that begin in a token's bytes; one that is
// spread over several tokens counts once.
func characters(b []byte) (n int) {
	for _, x := range b {
		if utf8.RuneStart(x) {
			n++
		}
	}
	return n
}
