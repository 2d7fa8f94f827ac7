package calls

import (
	"strings"
	"unicode"
)

// Event is what a piece of an answer turned out to be: text, the beginning of a
// call, or more of its arguments.
type Event struct {
	Text      string
	Call      int    // number of the call that this is of, from 0; -1: text
	Name      string // set where a call begins
	Arguments string
}

// Parser finds calls in one answer. It never gives away a part of what may
// become one.
type Parser struct {
	style Style
	known map[string]bool

	mode  mode
	held  string // not decided yet
	scan  *scanner
	calls int
	began bool // the call that is scanned was announced
	spoke bool // some text was given away
}

type mode int

const (
	inText   mode = iota
	inCall        // an object, or what may be one
	behind        // after an object: its closing tag, a comma, the end of the list
	onlyText      // calls cannot come any more
)

// NewParser begins an answer that may call tools of these names.
func NewParser(s Style, names []string) *Parser {
	p := &Parser{style: s, known: map[string]bool{}}
	for _, n := range names {
		p.known[n] = true
	}
	return p
}

// Calls is how many calls began.
func (p *Parser) Calls() int { return p.calls }

// Marker takes the control token in front of calls.
func (p *Parser) Marker() []Event {
	switch p.style.Kind {
	case Bare:
		return nil // what follows is JSON with or without it
	case None:
		return nil
	}
	return p.Add(p.style.mark())
}

// Add takes the next text.
func (p *Parser) Add(text string) (out []Event) {
	p.held += text
	for {
		before, mode := p.held, p.mode
		out = p.advance(out)
		if p.held == before && p.mode == mode || p.held == "" {
			return out
		}
	}
}

// End gives what was held back, at the end of an answer.
func (p *Parser) End() (out []Event) {
	if p.mode == inCall && !p.began {
		p.held, p.scan = p.unread()+p.held, nil // it did not become a call
		p.mode = onlyText
	}
	if p.mode == behind || p.mode == inCall {
		return nil
	}
	if rest := p.held; strings.TrimSpace(rest) != "" || p.calls == 0 {
		out = p.say(out, rest)
	}
	p.held = ""
	return out
}

// unread is what was scanned of an object that is no call, with what stood in
// front of it.
func (p *Parser) unread() string {
	if p.scan == nil {
		return ""
	}
	raw := p.scan.raw.String()
	if p.style.Kind == Tags {
		return openTag + raw
	}
	return raw
}

func (p *Parser) say(out []Event, text string) []Event {
	if text == "" {
		return out
	}
	p.spoke = true
	return append(out, Event{Text: text, Call: -1})
}

func (p *Parser) advance(out []Event) []Event {
	switch p.mode {
	case inText:
		return p.text(out)
	case inCall:
		return p.object(out)
	case behind:
		p.after()
		return out
	}
	out = p.say(out, p.held)
	p.held = ""
	return out
}

// text looks for what begins calls.
func (p *Parser) text(out []Event) []Event {
	if p.style.Kind == Bare {
		return p.bare(out)
	}
	mark := p.style.mark()
	if at := strings.Index(p.held, mark); mark != "" && at >= 0 {
		out = p.say(out, strings.TrimRightFunc(p.held[:at], unicode.IsSpace))
		p.held = p.held[at+len(mark):]
		p.mode, p.scan, p.began = inCall, newScanner(), false
		return out
	}
	keep := overlap(p.held, mark)
	give := strings.TrimRightFunc(p.held[:len(p.held)-keep], unicode.IsSpace) // space in front of a call is none of the text
	out = p.say(out, give)
	p.held = p.held[len(give):]
	return out
}

// overlap is how much of s at its end may begin mark.
func overlap(s, mark string) int {
	for n := min(len(s), len(mark)); n > 0; n-- {
		if strings.HasPrefix(mark, s[len(s)-n:]) {
			return n
		}
	}
	return 0
}

// bare decides by the first character whether an answer is a call.
func (p *Parser) bare(out []Event) []Event {
	start := strings.TrimLeftFunc(p.held, unicode.IsSpace)
	switch {
	case start == "":
	case start[0] == '{':
		p.mode, p.scan, p.began = inCall, newScanner(), false
	default:
		p.mode = onlyText
	}
	return out
}

// object scans one call.
func (p *Parser) object(out []Event) []Event {
	for i := range len(p.held) {
		c := p.held[i]
		if p.style.Kind == Bracket && !p.scan.begun() && (c == '[' || c == ',') {
			continue
		}
		arguments, fine := p.scan.take(c)
		if !fine || p.scan.named() && p.style.Kind == Bare && !p.known[p.scan.name] {
			return p.retreat(out, p.held[i+1:])
		}
		if p.scan.ready() && !p.began {
			p.began = true
			out = append(out, Event{Call: p.calls, Name: p.scan.name})
			p.calls++
		}
		if p.began && arguments != "" {
			out = addArguments(out, p.calls-1, arguments)
		}
		if p.scan.done() {
			return p.close(out, p.held[i+1:])
		}
	}
	p.held = ""
	return out
}

// addArguments adds to the last event where that is of the same call.
func addArguments(out []Event, call int, text string) []Event {
	if n := len(out); n > 0 && out[n-1].Call == call {
		out[n-1].Arguments += text
		return out
	}
	return append(out, Event{Call: call, Arguments: text})
}

// close ends an object: a call, unless it has no name.
func (p *Parser) close(out []Event, rest string) []Event {
	if !p.began {
		if p.scan.name == "" {
			return p.retreat(out, rest)
		}
		out = append(out, Event{Call: p.calls, Name: p.scan.name, Arguments: "{}"})
		p.calls++
	}
	p.held, p.mode, p.scan = rest, behind, nil
	return out
}

// retreat gives back as text what turned out to be no call. Arguments that were
// given away stay: the answer broke off in the middle of a call.
func (p *Parser) retreat(out []Event, rest string) []Event {
	if p.began {
		p.held, p.mode = "", behind
		return out
	}
	out = p.say(out, p.unread())
	p.held, p.scan, p.mode = rest, nil, onlyText
	if p.style.Kind == Tags {
		p.mode = inText
	}
	return out
}

// after passes over what stands between calls and behind them.
func (p *Parser) after() {
	rest := strings.TrimLeftFunc(p.held, unicode.IsSpace)
	switch p.style.Kind {
	case Tags:
		if after, ok := strings.CutPrefix(rest, closeTag); ok {
			p.held, p.mode = after, inText
		} else if !strings.HasPrefix(closeTag, rest) {
			p.mode = inText
		}
	case Bracket:
		if rest != "" && rest[0] == ',' {
			p.held, p.mode, p.scan, p.began = rest[1:], inCall, newScanner(), false
		} else if rest != "" {
			p.held = "" // the end of the list; nothing sensible follows
		}
	case Bare:
		if rest != "" && rest[0] == ';' {
			rest = strings.TrimLeftFunc(rest[1:], unicode.IsSpace)
		}
		if rest != "" && rest[0] == '{' {
			p.held, p.mode, p.scan, p.began = rest, inCall, newScanner(), false
		}
	}
}
