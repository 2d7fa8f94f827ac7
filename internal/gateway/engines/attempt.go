package engines

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// attempt is one try at one engine.
type attempt struct {
	room   *Engines
	relay  *relay
	call   *Call
	grant  *grant
	began  time.Time
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer // ends the attempt when nothing comes
}

// try asks one engine. It gives nil when the client has its answer, a *failure
// when another engine may be asked, and any other error when the client left.
func (r *Engines) try(rel *relay, c *Call, g *grant, body []byte) error {
	a := &attempt{room: r, relay: rel, call: c, grant: g, began: time.Now()}
	a.ctx, a.cancel = context.WithCancelCause(rel.r.Context())
	defer a.cancel(nil)
	r.mu.Lock()
	alive, patience := g.engine.alive, g.engine.patience(c)
	if g.last && g.engine.rec.FirstByte == 0 {
		patience = max(patience, lastPatience)
	}
	r.mu.Unlock()
	defer context.AfterFunc(alive, func() { a.cancel(errDead) })()
	a.timer = time.AfterFunc(patience, func() { a.cancel(errSilent) })
	defer a.timer.Stop()
	resp, err := g.engine.client.RoundTrip(a.request(body))
	if err != nil {
		if rel.r.Context().Err() != nil {
			return context.Cause(rel.r.Context())
		}
		return failed(g.engine, a.ctx, Unreachable, err)
	}
	defer resp.Body.Close()
	err = a.answer(resp)
	if err != nil && rel.r.Context().Err() != nil {
		return context.Cause(rel.r.Context())
	}
	return err
}

// passed are the headers of a client that an engine gets; all others stay here,
// above all whatever may be a credential.
var passed = []string{"Accept", "Content-Type", "Idempotency-Key", "Openai-Beta", "Traceparent", "Tracestate", "User-Agent"}

// hopsHeader counts the gateways that a request went through, so that two that
// know each other do not send it round for ever.
const (
	hopsHeader = "X-Hecate-Hops"
	mostHops   = 4
)

// request words the call for the engine. body is nil for what the client sent.
func (a *attempt) request(body []byte) *http.Request {
	e, in := a.grant.engine, a.relay.r
	h := make(http.Header, 10)
	for _, name := range passed {
		if v := in.Header[name]; len(v) > 0 {
			h[name] = v
		}
	}
	h["X-Request-Id"] = []string{a.relay.w.Header().Get("X-Request-Id")}
	h[hopsHeader] = []string{string(rune('1' + hops(in)))}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = nil // Go's own says nothing to anybody
	}
	switch {
	case e.rec.PassKey:
		if v := in.Header["Authorization"]; len(v) > 0 {
			h["Authorization"] = v
		}
	case e.rec.KeyEnv != "":
		if key := a.room.key(e); key != "" {
			h["Authorization"] = []string{"Bearer " + key}
		}
	}
	u := url.URL{Scheme: e.base.Scheme, Host: e.base.Host, Path: e.base.Path + a.call.Path, RawQuery: a.call.Query}
	req := &http.Request{Method: http.MethodPost, URL: &u, Host: e.base.Host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if body == nil {
		req.ContentLength = int64(len(a.call.body.data))
		req.Body = a.call.body.reader()
		req.GetBody = func() (io.ReadCloser, error) { return a.call.body.reader(), nil }
	} else {
		req.ContentLength = int64(len(body))
		req.Body = io.NopCloser(bytes.NewReader(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	return req.WithContext(a.ctx)
}

func hops(r *http.Request) int {
	if v := r.Header.Get(hopsHeader); len(v) == 1 && v[0] >= '0' && v[0] <= '9' {
		return int(v[0] - '0')
	}
	return 0
}

// answer passes on what the engine says, or judges it.
func (a *attempt) answer(resp *http.Response) error {
	if resp.StatusCode/100 != 2 {
		return a.refusal(resp)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if enc := resp.Header.Get("Content-Encoding"); kind == "text/event-stream" && enc != "" && !strings.EqualFold(enc, "identity") {
		return a.fail(Malformed, errors.New("it compresses a stream though nobody asked for it"))
	}
	if kind == "text/event-stream" {
		return a.stream(resp)
	}
	if a.relay.streaming() {
		return a.fail(Malformed, errors.New("it answers with a whole where a stream was to go on"))
	}
	return a.whole(resp)
}

func (a *attempt) fail(kind Kind, because error) *failure {
	return failed(a.grant.engine, a.ctx, kind, because)
}

// maxRefusal is how much of an error's body is kept.
const maxRefusal = 256 << 10

// refusal judges a status that is not 2xx: the client's mistakes are the client's,
// all else is tried elsewhere. The body is passed on if nobody does better.
func (a *attempt) refusal(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err != nil {
		return a.fail(Cut, err)
	}
	f := a.fail(Broken, errors.New(resp.Status))
	f.answer = &refused{status: resp.StatusCode, header: resp.Header, body: body}
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests:
		f.kind, f.retryAfter = Busy, retryAfter(resp.Header, time.Now())
	case code >= 500 && code != http.StatusNotImplemented:
	case code == http.StatusNotFound && bytes.Contains(body, []byte("model")):
		f.kind = Missing
	case (code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusProxyAuthRequired) && !a.grant.engine.rec.PassKey:
		f.kind, f.answer = Forbidden, nil // what it says is about our key, not the client's
		f.because = a.grant.engine.keyFault(resp.Status, a.room.key(a.grant.engine))
	case code < 400:
		f.because = errors.New("it sends us elsewhere: " + resp.Status)
		f.answer = nil
	default:
		a.relay.refuse(f.answer)
		return nil
	}
	return f
}
