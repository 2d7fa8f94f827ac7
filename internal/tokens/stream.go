package tokens

// Finish is why an answer ended, in OpenAI's words.
type Finish string

// Reasons for the end of an answer.
const (
	FinishNone   Finish = ""       // it goes on
	FinishStop   Finish = "stop"   // an end token or a stop string
	FinishLength Finish = "length" // the limit of tokens
)

// StreamOptions bound one answer.
type StreamOptions struct {
	Stops     []string // up to MaxStops strings before which the answer ends
	MaxTokens int      // 0: no limit here
}

// Piece is what one token adds to an answer.
type Piece struct {
	Text   string // may be empty: held back, or a control token
	Finish Finish
	Stop   string // the stop string, if one ended the answer
}

// Stream turns the tokens of one answer into text and says when it is over.
type Stream struct {
	d      *Detokenizer
	m      *StopMatcher
	max    int
	count  int
	finish Finish
}

// NewStream starts an answer. It fails with ErrStops on unacceptable stop strings.
func (t *Tokenizer) NewStream(o StreamOptions) (*Stream, error) {
	m, err := NewStopMatcher(o.Stops)
	if err != nil {
		return nil, err
	}
	return &Stream{d: t.NewDetokenizer(), m: m, max: o.MaxTokens}, nil
}

// Push takes the next token. After a piece with a Finish nothing follows.
func (s *Stream) Push(id int32) Piece {
	if s.finish != FinishNone {
		return Piece{Finish: s.finish}
	}
	s.count++
	if s.d.t.IsEnd(id) {
		return s.end(FinishStop)
	}
	text, stop := s.m.Push(s.d.Push(id))
	p := Piece{Text: text, Stop: stop}
	switch {
	case stop != "":
		s.finish = FinishStop
	case s.max > 0 && s.count >= s.max:
		tail := s.end(FinishLength)
		p.Text += tail.Text
		p.Stop = tail.Stop
	}
	p.Finish = s.finish
	return p
}

// Close ends an answer for a reason from outside and returns what was held back.
func (s *Stream) Close(why Finish) Piece {
	if s.finish != FinishNone {
		return Piece{Finish: s.finish}
	}
	return s.end(why)
}

// end flushes; what the end completes may still contain a stop string.
func (s *Stream) end(why Finish) Piece {
	s.finish = why
	text, stop := s.m.Push(s.d.Flush())
	if stop != "" {
		s.finish = FinishStop
	} else {
		text += s.m.Flush()
	}
	return Piece{Text: text, Finish: s.finish, Stop: stop}
}

// Count returns how many tokens were pushed, the end token included.
func (s *Stream) Count() int { return s.count }
