package gguf

import "fmt"

// FormatError says what is wrong with a file: which field has which value, and
// why that cannot be.
type FormatError struct {
	File  string // path or name
	Field string // key, "tensor NAME", "magic", ...
	Value string // what the file says
	Why   string // what is wrong with it
}

func (e *FormatError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("gguf: %s: %s: %s", e.File, e.Field, e.Why)
	}
	return fmt.Sprintf("gguf: %s: %s is %s: %s", e.File, e.Field, e.Value, e.Why)
}
