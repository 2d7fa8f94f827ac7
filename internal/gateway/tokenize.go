package gateway

import (
	"net/http"

	"hecate/internal/gateway/openai"
)

// tokenize serves POST /v1/tokenize.
func (g *Gateway) tokenize(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	req, fault := openai.DecodeTokenize(body)
	if fault != nil {
		return fault
	}
	model, fault := g.lookup(r.Context(), req.Model)
	if fault != nil {
		return fault
	}
	ids, fault := tokensOf(r, req, model)
	if fault != nil {
		return fault
	}
	out := openai.Tokenized{Count: len(ids), Max: model.Context(), Tokens: ids}
	if req.Strings {
		for _, id := range ids {
			out.Strings = append(out.Strings, model.Text.Name(id))
		}
	}
	return writeJSON(w, out)
}

func tokensOf(r *http.Request, req *openai.TokenizeRequest, m *Model) ([]int32, *openai.Error) {
	if req.Text == nil {
		chat := req.Chat()
		if _, fault := styleFor(chat, m); fault != nil {
			return nil, fault
		}
		ids, err := m.Text.EncodeChat(r.Context(), turns(chat.Messages), toolsJSON(chat.CallableTools()))
		if err != nil {
			return nil, openai.BadRequest("messages", "invalid_value", "The messages do not fit this model's chat template: %s.", err)
		}
		return ids, nil
	}
	ids, err := m.Text.EncodeText(*req.Text, orTrue(req.AddSpecial), orTrue(req.ParseSpecial))
	if err != nil {
		return nil, openai.BadRequest("prompt", "invalid_value", "The text cannot be read: %s.", err)
	}
	if ids == nil {
		ids = []int32{} // an array, also where it is empty
	}
	return ids, nil
}

func orTrue(b *bool) bool { return b == nil || *b }

// detokenize serves POST /v1/detokenize.
func (g *Gateway) detokenize(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	req, fault := openai.DecodeDetokenize(body)
	if fault != nil {
		return fault
	}
	model, fault := g.lookup(r.Context(), req.Model)
	if fault != nil {
		return fault
	}
	if fault := knownTokens("tokens", req.Tokens, model); fault != nil {
		return fault
	}
	text := model.Text.Decode(req.Tokens)
	return writeJSON(w, openai.Detokenized{Prompt: text, Content: text})
}

// knownTokens refuses ids that the model does not have.
func knownTokens(param string, ids []int32, m *Model) *openai.Error {
	for _, id := range ids {
		if id < 0 || int(id) >= m.Text.Vocabulary() {
			return openai.BadRequest(param, "invalid_value", "'%s' holds token %d, but this model has %d.", param, id, m.Text.Vocabulary())
		}
	}
	return nil
}
