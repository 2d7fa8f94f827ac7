package live

import (
	"bytes"
	"encoding/json"
	"sync"

	"hecate/internal/report"
)

// A Feed is safe for concurrent use. The zero value is not ready: NewFeed.
type Feed struct {
	mu struct {
		sync.Mutex
		revision uint64
		parts    map[string]part
		bells    map[chan struct{}]bool
		// last is the frame from the revision before the newest one: what all
		// watchers that keep up are sent, written once.
		last []byte
		from uint64
	}
}

// part is one piece of the picture. A nil body is one that is gone.
type part struct {
	body     json.RawMessage
	revision uint64
}

// NewFeed makes a feed without any part.
func NewFeed() *Feed {
	f := &Feed{}
	f.mu.parts = map[string]part{}
	f.mu.bells = map[chan struct{}]bool{}
	return f
}

// Set takes the whole picture: parts that differ are news, parts that are
// missing are gone.
func (f *Feed) Set(picture map[string]json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, changed := f.mu.revision+1, false
	for name, body := range picture {
		if old, ok := f.mu.parts[name]; !ok || !bytes.Equal(old.body, body) {
			f.mu.parts[name] = part{body, next}
			changed = true
		}
	}
	for name, old := range f.mu.parts {
		if _, ok := picture[name]; !ok && old.body != nil {
			f.mu.parts[name] = part{nil, next}
			changed = true
		}
	}
	if !changed {
		return
	}
	f.mu.revision, f.mu.last = next, nil
	for bell := range f.mu.bells {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
}

// Watch gives a bell that rings when there is news, now too; stop ends it.
func (f *Feed) Watch() (bell <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	ch <- struct{}{}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.bells[ch] = true
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.mu.bells, ch)
	}
}

// Watchers counts who watches.
func (f *Feed) Watchers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.mu.bells)
}

// Since gives the JSON of a report.Frame with what changed after a revision, and
// the revision it leads to; nil when nothing did. Revision 0 gives all there is.
func (f *Feed) Since(revision uint64) (frame []byte, now uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if revision == f.mu.revision {
		return nil, revision
	}
	if f.mu.last == nil || f.mu.from != revision {
		f.mu.last, f.mu.from = f.frameLocked(revision), revision
	}
	return f.mu.last, f.mu.revision
}

func (f *Feed) frameLocked(revision uint64) []byte {
	out := report.Frame{Revision: f.mu.revision, Full: revision == 0, Parts: map[string]json.RawMessage{}}
	for name, p := range f.mu.parts {
		switch {
		case p.revision <= revision, out.Full && p.body == nil:
		case p.body == nil:
			out.Parts[name] = json.RawMessage("null")
		default:
			out.Parts[name] = p.body
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic("BUG: a picture that cannot be written: " + err.Error())
	}
	return b
}
