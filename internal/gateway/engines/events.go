package engines

import (
	"bytes"
	"encoding/json"
)

// dialect says which events a stream has.
type dialect int

const (
	unknown     dialect = iota // passes through unread: the connection's end is all that is known of it
	chat                       // of chat completions
	completions                // of completions
)

func dialectOf(path string) dialect {
	switch path {
	case "/chat/completions":
		return chat
	case "/completions":
		return completions
	}
	return unknown
}

// wholeEvents is how much of b consists of whole events: up to behind the last
// empty line. Lines end as the standard allows: LF, CRLF or CR.
func wholeEvents(b []byte) int {
	n := 0
	for _, end := range []string{"\n\n", "\n\r\n", "\r\r"} {
		if i := bytes.LastIndex(b, []byte(end)); i >= 0 {
			n = max(n, i+len(end))
		}
	}
	return n
}

// facts are what a light look at the events of a stream has shown so far.
type facts struct {
	finished bool // a finish reason came
	done     bool // [DONE] came
	failed   bool // the engine itself told of an error
	events   int  // with data, [DONE] left out
	usage    tokens
}

// whole says that a stream may end here.
func (f *facts) whole(d dialect) bool {
	return d == unknown || f.finished || f.failed
}

var (
	dataField  = []byte("data:")
	doneMark   = []byte("[DONE]")
	finishName = []byte(`"finish_reason"`)
	errorName  = []byte(`"error"`)
	usageName  = []byte(`"usage"`)
)

// soundTail says that every data line is a whole one, also the last.
func soundTail(events []byte) bool {
	for at := 0; at < len(events); {
		line, next := nextLine(events, at)
		at = next
		data, ok := bytes.CutPrefix(line, dataField)
		if data = bytes.TrimSpace(data); ok && !bytes.Equal(data, doneMark) && !json.Valid(data) {
			return false
		}
		if !ok && next == len(events) && bytes.HasPrefix(dataField, line) && len(line) > 0 {
			return false // the name of the field itself breaks off
		}
	}
	return true
}

// look reads whole events. It gives how many bytes of them are sound: what follows
// is an event that breaks off, or a [DONE] before any finish reason.
func (f *facts) look(events []byte, d dialect) (sound int) {
	begin := 0 // of the event
	for at := 0; at < len(events); {
		line, next := nextLine(events, at)
		at = next
		if len(line) == 0 {
			begin = at
			continue
		}
		data, ok := bytes.CutPrefix(line, dataField)
		if !ok {
			continue
		}
		if !f.take(bytes.TrimSpace(data), d) {
			return begin
		}
	}
	return len(events)
}

// take looks at one data line, false when it is not sound.
func (f *facts) take(data []byte, d dialect) bool {
	switch {
	case bytes.Equal(data, doneMark):
		f.done = true
		return f.whole(d)
	case d == unknown:
		f.events++
		return true
	case len(data) == 0:
		return true
	case data[0] != '{' || data[len(data)-1] != '}':
		return false
	}
	f.events++
	f.finished = f.finished || hasText(data, finishName)
	f.failed = f.failed || hasObject(data, errorName)
	if hasObject(data, usageName) {
		f.usage = usageOf(data)
	}
	return true
}

// hasText says that a field of that name has a string for its value somewhere. Text
// that an answer quotes is escaped and does not match.
func hasText(data, name []byte) bool { return has(data, name, '"') }

func hasObject(data, name []byte) bool { return has(data, name, '{') }

func has(data, name []byte, first byte) bool {
	for {
		i := bytes.Index(data, name)
		if i < 0 {
			return false
		}
		data = data[i+len(name):]
		if k := space(data, 0); k < len(data) && data[k] == ':' {
			if k = space(data, k+1); k < len(data) && data[k] == first {
				return true
			}
		}
	}
}

// nextLine is the line at a place, and where the next one begins.
func nextLine(b []byte, at int) (line []byte, next int) {
	n := bytes.IndexAny(b[at:], "\r\n")
	if n < 0 {
		return b[at:], len(b)
	}
	next = at + n + 1
	if b[at+n] == '\r' && next < len(b) && b[next] == '\n' {
		next++
	}
	return b[at : at+n], next
}

// opening says what the first events of a stream amount to.
type opening int

const (
	nothingYet opening = iota // comments, the role, empty deltas
	content                   // the answer has begun, or ended
	refusal                   // an error instead of an answer
	broken                    // no event of this dialect
)

// openingOf reads events closely until the first that says something. Only the
// first few of each stream are looked at so.
func openingOf(events []byte, d dialect) opening {
	for at := 0; at < len(events); {
		line, next := nextLine(events, at)
		at = next
		data, ok := bytes.CutPrefix(line, dataField)
		if !ok {
			continue
		}
		if o := openingOfData(bytes.TrimSpace(data), d); o != nothingYet {
			return o
		}
	}
	return nothingYet
}

func openingOfData(data []byte, d dialect) opening {
	if d == unknown {
		return content
	}
	if bytes.Equal(data, doneMark) {
		return nothingYet // an answer of nothing at all: the end of the stream decides
	}
	var e struct {
		Error   json.RawMessage
		Choices []struct {
			Text         string
			Delta        map[string]json.RawMessage
			FinishReason *string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return broken
	}
	if len(e.Error) > 0 && string(e.Error) != "null" {
		return refusal
	}
	for _, c := range e.Choices {
		if c.Text != "" || c.FinishReason != nil && *c.FinishReason != "" {
			return content
		}
		for name, v := range c.Delta {
			if name != "role" && !emptyValue(v) {
				return content
			}
		}
	}
	return nothingYet
}

func emptyValue(v json.RawMessage) bool {
	switch string(v) {
	case "null", `""`, "[]", "{}":
		return true
	}
	return false
}
