package engines

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"

	"hecate/internal/gateway/openai"
)

// A relay is the way of one answer to its client, over all attempts. Once content
// has left, nothing but its continuation may follow.
type relay struct {
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	dialect dialect
	tries   int // attempts that failed

	mu      sync.Mutex // between the signs of life and all else
	started bool       // the headers have left
	content bool       // so has a part of the answer
	over    bool       // nothing may be written any more
	signs   *time.Timer

	tokens tokens
	past   past
}

// tokens are what an answer has cost, as far as the engine said.
type tokens struct{ prompt, completion int }

// Bounds of what a client sees.
const (
	headBound     = 10 * time.Second // then a stream begins, if only with a comment
	keepAlive     = 10 * time.Second
	writePatience = 30 * time.Second // with a client that takes nothing
)

// errDeaf: the client takes nothing any more.
var errDeaf = errors.New("the client takes nothing of its answer")

func newRelay(w http.ResponseWriter, r *http.Request, c *Call) *relay {
	rel := &relay{w: w, r: r, control: http.NewResponseController(w), dialect: dialectOf(c.Path)}
	if c.Stream {
		rel.signs = time.AfterFunc(headBound, rel.sign)
	}
	rel.past.follow(c, rel.dialect)
	return rel
}

// sign shows that the connection lives while no engine has said anything.
func (l *relay) sign() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.content {
		return
	}
	if !l.started {
		l.headLocked(nil, "")
		l.w.Header().Set("Content-Type", "text/event-stream")
		l.w.Header().Set("Cache-Control", "no-cache, no-transform")
		l.w.WriteHeader(http.StatusOK)
		l.started = true
	}
	if l.writeLocked([]byte(": the answer is on its way\n\n")) == nil {
		l.signs.Reset(keepAlive)
	}
}

// close ends the relay: the response writer is the handler's again.
func (l *relay) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.signs != nil {
		l.signs.Stop()
	}
}

// begun says that a part of the answer has left.
func (l *relay) begun() bool { return l.content }

// streaming says that a stream has begun, if only with a sign of life.
func (l *relay) streaming() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started
}

// open sends the headers of an answer, if they have not left.
func (l *relay) open(resp *http.Response, engine string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.signs != nil {
		l.signs.Stop()
	}
	l.content = true
	if l.started {
		return
	}
	l.headLocked(resp.Header, engine)
	if resp.ContentLength >= 0 {
		l.w.Header().Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	}
	l.w.WriteHeader(resp.StatusCode)
	l.started = true
}

// kept are headers of an engine's answer that concern its connection, its own
// account or its own site.
var kept = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "Content-Length": true, "Date": true, "Server": true, "Set-Cookie": true, "Set-Cookie2": true,
	"Www-Authenticate": true, "Alt-Svc": true, "Strict-Transport-Security": true, "X-Request-Id": true, "X-Hecate-Route": true, "X-Hecate-Rescues": true, "X-Accel-Buffering": true,
}

func (l *relay) headLocked(from http.Header, engine string) {
	h := l.w.Header()
	for name, values := range from {
		if !kept[name] && !strings.HasPrefix(name, "Access-Control-") && !strings.HasPrefix(name, "X-Ratelimit-") {
			h[name] = values
		}
	}
	for _, list := range from["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	if from == nil || strings.HasPrefix(from.Get("Content-Type"), "text/event-stream") {
		h["X-Accel-Buffering"] = noBuffering
	}
	if engine != "" {
		h["X-Hecate-Route"] = []string{engine}
	}
	if l.tries > 0 {
		h["X-Hecate-Rescues"] = []string{strconv.Itoa(l.tries)}
	}
}

var noBuffering = []string{"no"} // shared: header values are replaced, never changed

// write sends a part of the answer at once.
func (l *relay) write(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writeLocked(b)
}

func (l *relay) writeLocked(b []byte) error {
	_ = l.control.SetWriteDeadline(time.Now().Add(writePatience)) // not every writer can
	if _, err := l.w.Write(b); err != nil {
		return fmt.Errorf("%w: %w", errDeaf, err)
	}
	if err := l.control.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errDeaf, err)
	}
	return nil
}

// put sends a body whose end is the answer's: net/http sends it by itself.
func (l *relay) put(b []byte) error {
	_ = l.control.SetWriteDeadline(time.Now().Add(writePatience))
	if _, err := l.w.Write(b); err != nil {
		return fmt.Errorf("%w: %w", errDeaf, err)
	}
	return nil
}

// refuse passes an engine's refusal on, or tells of it where a stream has begun.
func (l *relay) refuse(a *refused) {
	if l.streaming() {
		l.breakOff(openai.Internal("engine_refused", "The request was refused: "+http.StatusText(a.status)+"."))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started, l.content = true, true
	l.headLocked(a.header, "")
	l.w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	l.w.WriteHeader(a.status)
	_, _ = l.w.Write(a.body)
}

// breakOff ends a stream that cannot go on. A clean end would be taken for a whole
// answer, so the connection is aborted after the error event. It does not return.
func (l *relay) breakOff(e *openai.Error) {
	event := append(append([]byte("data: "), e.Body()...), "\n\n"...)
	_ = l.write(event)
	l.close()
	panic(http.ErrAbortHandler)
}
