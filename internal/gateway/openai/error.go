package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"hecate/internal/sampling"
)

// Error is OpenAI's error object together with how HTTP must carry it.
type Error struct {
	Status  int     `json:"-"`
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`

	RetryAfter time.Duration `json:"-"` // with 429 and 503: when to come again
	NoRetry    bool          `json:"-"` // trying again cannot help
	Reason     string        `json:"-"` // why it was dropped, for the header
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Type, e.Message) }

// Body is the JSON object that a client sees.
func (e *Error) Body() []byte {
	b, err := json.Marshal(struct {
		Error *Error `json:"error"`
	}{e})
	if err != nil {
		panic("BUG: an error object that cannot be written: " + err.Error())
	}
	return b
}

// Write sends the error as a whole response.
func (e *Error) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if e.RetryAfter > 0 {
		h.Set("Retry-After", fmt.Sprint(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	if e.NoRetry {
		h.Set("X-Should-Retry", "false")
	}
	if e.Reason != "" {
		h.Set("X-Hecate-Reason", e.Reason)
	}
	w.WriteHeader(e.Status)
	_, _ = w.Write(append(e.Body(), '\n'))
}

// BadRequest is a client's mistake about one parameter ("" for the whole).
func BadRequest(param, code, format string, args ...any) *Error {
	e := &Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: fmt.Sprintf(format, args...), NoRetry: true}
	if param != "" {
		e.Param = &param
	}
	if code != "" {
		e.Code = &code
	}
	return e
}

// Unauthorized is for requests without a good API key.
func Unauthorized(code, message string) *Error {
	e := BadRequest("", code, "%s", message)
	e.Status = http.StatusUnauthorized
	return e
}

// NotFound answers for a model that nobody serves.
func NotFound(model string) *Error {
	e := BadRequest("model", "model_not_found", "The model %q does not exist here. GET /v1/models lists those that do.", model)
	e.Status = http.StatusNotFound
	return e
}

// TooLarge answers for a body over the limit.
func TooLarge(limit int64) *Error {
	e := BadRequest("", "request_too_large", "The request body is over the limit of %d bytes.", limit)
	e.Status = http.StatusRequestEntityTooLarge
	return e
}

// ContextLength answers for a prompt that does not fit.
func ContextLength(prompt, want, limit int) *Error {
	return BadRequest("", "context_length_exceeded",
		"This model's context length is %d tokens. The request needs %d (%d of prompt, %d to generate).", limit, prompt+want, prompt, want)
}

// Unavailable says what is missing now and when to come again.
func Unavailable(reason, message string, retry time.Duration) *Error {
	code := reason
	return &Error{Status: http.StatusServiceUnavailable, Type: "server_error", Message: message, Code: &code, RetryAfter: retry, Reason: reason}
}

// Overloaded says that there is no room now.
func Overloaded(reason, message string, retry time.Duration) *Error {
	code := reason
	return &Error{Status: http.StatusTooManyRequests, Type: "rate_limit_error", Message: message, Code: &code, RetryAfter: retry, Reason: reason}
}

// Internal is a fault of ours.
func Internal(code, message string) *Error {
	return &Error{Status: http.StatusInternalServerError, Type: "server_error", Message: message, Code: &code}
}

// decodeFault words what encoding/json found wrong.
func decodeFault(err error) *Error {
	var e *Error
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &typ):
		field := strings.TrimPrefix(typ.Field, "Common.")
		return BadRequest(field, "invalid_type", "%s must be %s, not %s.", orBody(field), words(typ.Type.Kind().String()), typ.Value)
	case errors.As(err, &syntax):
		return BadRequest("", "invalid_json", "The body is not valid JSON at byte %d: %s.", syntax.Offset, syntax)
	default:
		return BadRequest("", "invalid_json", "The body is not valid JSON: %s.", err)
	}
}

func orBody(field string) string {
	if field == "" {
		return "The body"
	}
	return "'" + field + "'"
}

// words names a Go kind the way JSON people do.
func words(kind string) string {
	switch kind {
	case "struct", "map":
		return "an object"
	case "slice", "array":
		return "an array"
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	case "float32", "float64":
		return "a number"
	default:
		return "a whole number"
	}
}

// samplingFault words what the sampler refuses.
func samplingFault(err error) *Error {
	var p *sampling.ParamError
	if errors.As(err, &p) {
		return BadRequest(p.Field, "invalid_value", "'%s' is %v, must be %s.", p.Field, p.Value, p.Want)
	}
	return BadRequest("", "invalid_value", "%s.", err)
}
