package engines

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// past is what has been said of an answer that could go on elsewhere: of streamed
// completions of one text that are greedy and have a limit, because only of those
// can another engine compute the same continuation.
type past struct {
	able   bool
	prompt span // of the value in the body
	limit  span
	most   int // tokens allowed
	text   strings.Builder
	events int    // with text; one token each, as the test has proved
	id     []byte // of the first event, as written: one stream has one id
	made   []byte // likewise "created"
	again  bool   // another attempt speaks now
}

// follow finds out whether a call is of the kind.
func (p *past) follow(c *Call, d dialect) {
	if d != completions || !c.Stream {
		return
	}
	body := c.body.data
	greedy, plain := false, true
	err := object(body, func(key []byte, v span) error {
		raw := v.of(body)
		switch string(key) {
		case "prompt":
			p.prompt = v
			plain = plain && raw[0] == '"'
		case "max_tokens":
			p.limit = v
			p.most, _ = strconv.Atoi(string(raw))
		case "temperature":
			t, err := strconv.ParseFloat(string(raw), 64)
			greedy = err == nil && t == 0
		case "model", "stream", "seed", "user", "top_p", "top_k":
		default: // what looks back at the whole text, or counts from its begin, cannot be cut in two
			plain = plain && string(raw) == "null"
		}
		return nil
	})
	p.able = err == nil && greedy && plain && p.prompt.there() && p.most > 0
}

// note remembers events that leave now, and gives them as they shall leave: those
// of a second attempt under the first one's id.
func (p *past) note(events []byte) []byte {
	if !p.able {
		return events
	}
	var out []byte
	for at := 0; at < len(events); {
		line, next := nextLine(events, at)
		data, ok := bytes.CutPrefix(line, dataField)
		data = bytes.TrimSpace(data)
		if ok && len(data) > 0 && data[0] == '{' {
			p.hear(data)
			if p.again {
				out = append(append(append(out, "data: "...), p.renamed(data)...), events[at+len(line):next]...)
				at = next
				continue
			}
		}
		out = append(out, events[at:next]...)
		at = next
	}
	return out
}

func (p *past) hear(data []byte) {
	var e struct {
		Choices []struct{ Text string }
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	for _, c := range e.Choices {
		if c.Text != "" {
			p.text.WriteString(c.Text)
			p.events++
		}
	}
	if p.id == nil {
		_ = object(data, func(key []byte, v span) error {
			switch string(key) {
			case "id":
				p.id = bytes.Clone(v.of(data))
			case "created":
				p.made = bytes.Clone(v.of(data))
			}
			return nil
		})
	}
}

// renamed gives an event the id of the stream that it continues.
func (p *past) renamed(data []byte) []byte {
	for _, f := range []struct {
		name string
		want []byte
	}{{"id", p.id}, {"created", p.made}} {
		var at span
		_ = object(data, func(key []byte, v span) error {
			if string(key) == f.name {
				at = v
			}
			return nil
		})
		if at.there() && f.want != nil {
			data = spliced(data, at, f.want)
		}
	}
	return data
}

// goOn is the body that asks for the rest; nil when nobody can say it.
func (p *past) goOn(c *Call, own string) []byte {
	left := p.most - p.events
	if !p.able || left < 1 {
		return nil
	}
	var prompt string
	if json.Unmarshal(p.prompt.of(c.body.data), &prompt) != nil {
		return nil
	}
	edits := []edit{
		{c.model, quoted(own)}, {p.prompt, quoted(prompt + p.text.String())}, {p.limit, []byte(strconv.Itoa(left))},
	}
	return edited(c.body.data, edits)
}

// An edit replaces one value of a body.
type edit struct {
	at   span
	with []byte
}

// edited makes several edits, from the last place to the first, so that those
// before keep their place.
func edited(body []byte, edits []edit) []byte {
	for range edits {
		last := -1
		for i := range edits {
			if edits[i].with != nil && (last < 0 || edits[i].at.from > edits[last].at.from) {
				last = i
			}
		}
		body = spliced(body, edits[last].at, edits[last].with)
		edits[last].with = nil
	}
	return body
}
