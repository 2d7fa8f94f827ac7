package openai

import (
	"encoding/json"
	"errors"

	"hecate/internal/sampling/grammar"
	"hecate/internal/sampling/jsonschema"
)

// Types of ResponseFormat.
const (
	FormatText   = "text"
	FormatObject = "json_object"
	FormatSchema = "json_schema"
)

// ResponseFormat asks for a shape of the answer.
type ResponseFormat struct {
	Type       string      `json:"type"`
	JSONSchema *JSONSchema `json:"json_schema"`
}

// JSONSchema is a schema that an answer must satisfy. It does so whether or not
// strict is set.
type JSONSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Strict      *bool           `json:"strict"`
}

// shaped says that not any text will do.
func (f *ResponseFormat) shaped() bool { return f != nil && f.Type != FormatText }

func (f *ResponseFormat) check() *Error {
	if f == nil {
		return nil
	}
	switch f.Type {
	case FormatText, FormatObject:
		return nil
	case FormatSchema:
	default:
		return BadRequest("response_format", "unsupported_value", "'response_format.type' is %q, want text, json_object or json_schema.", f.Type)
	}
	s := f.JSONSchema
	switch {
	case s == nil || !given(s.Schema):
		return BadRequest("response_format.json_schema.schema", "missing_required_parameter", "'response_format.json_schema.schema' is missing.")
	case s.Name == "" || len(s.Name) > 64:
		return BadRequest("response_format.json_schema.name", "missing_required_parameter", "'response_format.json_schema.name' has %d bytes, want 1 to 64.", len(s.Name))
	}
	return nil
}

// Shape is the grammar of the texts that the format admits; nil: any.
func (f *ResponseFormat) Shape() (*grammar.Grammar, *Error) {
	if !f.shaped() {
		return nil, nil
	}
	b := jsonschema.NewBuilder()
	start := b.Object()
	if f.Type == FormatSchema {
		var err error
		if start, err = b.Schema(f.JSONSchema.Schema); err != nil {
			return nil, SchemaFault("response_format.json_schema.schema", err)
		}
	}
	g, err := b.Grammar(start)
	if err != nil {
		return nil, SchemaFault("response_format.json_schema.schema", err)
	}
	return g, nil
}

// SchemaFault words what is wrong with a schema.
func SchemaFault(param string, err error) *Error {
	var e *jsonschema.Error
	switch {
	case errors.As(err, &e):
		return BadRequest(param, "invalid_json_schema", "The schema cannot be used, at %s: %s.", e.Path, e.Message)
	case errors.Is(err, grammar.ErrEndless):
		return BadRequest(param, "invalid_json_schema", "The schema cannot be used: it contains itself without end, so that no value satisfies it.")
	case errors.Is(err, grammar.ErrTooLarge):
		return BadRequest(param, "invalid_json_schema", "The schema cannot be used: it is too large (%s).", err)
	}
	return BadRequest(param, "invalid_json_schema", "The schema cannot be used: %s.", err)
}
