package engines

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"hecate/internal/gateway/openai"
)

// MaxBody is the largest request that passes through, in bytes: images come as
// text, and a context of a million tokens is a few megabytes. What is held for all
// requests at once is bounded by how many connections a machine has.
const MaxBody = 32 << 20

// A Call is one request as it came. Close gives its memory back.
type Call struct {
	Model  string // as the client names it
	Path   string // below the API's folder, with its slash: /chat/completions
	Query  string // without credentials
	Key    string // whose turn it is, for fairness; "": nobody's in particular
	Stream bool

	PromptTokens int // estimated
	OutputTokens int // allowed; 0: not said

	body  *buffer
	model span // of the value, quotes included

	choices int // wanted; 0: nobody knows
}

// bytesPerToken turns bytes of JSON into tokens, roughly. It is for prices and
// patience only.
const bytesPerToken = 4

// Read takes a request's body, whole, and finds what it asks for. The error is an
// *openai.Error; when the body is no JSON, there is a call nevertheless, with the
// body alone.
func Read(w http.ResponseWriter, r *http.Request) (*Call, error) {
	b, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	c := &Call{body: b, choices: 1, Path: strings.TrimPrefix(r.URL.Path, "/v1"), Query: cleanQuery(r.URL.RawQuery)}
	c.PromptTokens = len(b.data)/bytesPerToken + 1
	return c, c.scan()
}

// Body is what the client sent. It must not be used after Close.
func (c *Call) Body() []byte { return c.body.data }

// Close gives the body back; requests that still send it keep it until they end.
func (c *Call) Close() { c.body.release() }

func (c *Call) scan() error {
	body := c.body.data
	err := object(body, func(key []byte, v span) error {
		switch {
		case named(key, "model"):
			if c.model.there() {
				return openai.BadRequest("model", "invalid_value", "'model' stands in the body twice.")
			}
			c.model = v
			return c.readModel(v.of(body))
		case named(key, "stream"):
			c.Stream = string(v.of(body)) == "true"
		case named(key, "n"):
			c.choices, _ = strconv.Atoi(string(v.of(body)))
		case named(key, "max_tokens"), named(key, "max_completion_tokens"), named(key, "max_output_tokens"):
			if n, err := strconv.Atoi(string(v.of(body))); err == nil && n > 0 {
				c.OutputTokens = n
			}
		}
		return nil
	})
	var known *openai.Error
	if errors.As(err, &known) {
		return known
	}
	if err != nil {
		return openai.BadRequest("", "invalid_json", "The request cannot be read: %s.", err)
	}
	return nil
}

func (c *Call) readModel(raw []byte) error {
	if err := json.Unmarshal(raw, &c.Model); err != nil {
		return openai.BadRequest("model", "invalid_type", "'model' must be a string.")
	}
	return nil
}

// as is the body for a model that an engine calls by another name: only the name
// is replaced.
func (c *Call) as(name string) (body []byte, own bool) {
	if name == c.Model {
		return c.body.data, true
	}
	return spliced(c.body.data, c.model, quoted(name)), false
}

func readBody(w http.ResponseWriter, r *http.Request) (*buffer, error) {
	if r.ContentLength > MaxBody {
		return nil, openai.TooLarge(MaxBody)
	}
	b := newBuffer()
	err := b.fill(http.MaxBytesReader(w, r.Body, MaxBody), r.ContentLength)
	if err == nil {
		return b, nil
	}
	b.release()
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, openai.TooLarge(large.Limit)
	}
	return nil, openai.BadRequest("", "unreadable_body", "The body could not be read: %s.", err)
}

// cleanQuery takes out of a query what looks like a credential.
func cleanQuery(query string) string {
	if query == "" {
		return ""
	}
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(strings.ToLower(part), "=")
		secret := false
		for _, word := range []string{"key", "token", "secret", "auth", "pass", "sig", "cred", "%"} {
			secret = secret || strings.Contains(name, word)
		}
		if !secret {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "&")
}

// fill reads all of it; size is a hint, -1 when nobody said. Memory beyond keepUpTo is
// taken for what has come only: to announce much costs a client nothing.
func (b *buffer) fill(r io.Reader, size int64) error {
	if size > 0 {
		b.grow(int(min(size, keepUpTo-1)) + 1) // one more byte, so that the end is seen without growing
	}
	for {
		if len(b.data) == cap(b.data) {
			b.grow(len(b.data) + 4<<10)
		}
		n, err := r.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a body: %w", err)
		}
	}
}
