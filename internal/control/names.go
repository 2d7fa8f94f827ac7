package control

import (
	"errors"
	"fmt"
	"strings"
)

const (
	maxNodeName  = 63  // a DNS label; it stands in certificates, headers and file names
	maxModelName = 128 // long enough for every published model tag
)

// ErrBadName is matched by every refusal of a node's or model's name.
var ErrBadName = errors.New("bad name")

// ValidateNodeName checks a node id: 1 to 63 ASCII letters, digits, '-', '_'
// or '.', starting with a letter or a digit. So no name is a path, a wildcard
// of the bus, or empty on a screen.
func ValidateNodeName(name string) error {
	return validateName("node", name, maxNodeName, "-_.")
}

// ValidateModelName checks a model id: like a node id, up to 128 characters,
// with ':', '+' and '@' allowed as well ("qwen2.5:7b-q4").
func ValidateModelName(name string) error {
	return validateName("model", name, maxModelName, "-_.:+@")
}

func validateName(kind, name string, limit int, also string) error {
	if name == "" {
		return fmt.Errorf("%w: a %s needs a name", ErrBadName, kind)
	}
	if len(name) > limit {
		return fmt.Errorf("%w: a %s's name has at most %d characters, this one has %d", ErrBadName, kind, limit, len(name))
	}
	if !alphanumeric(name[0]) {
		return fmt.Errorf("%w: %s name %q must start with a letter or a digit", ErrBadName, kind, name)
	}
	for i := 0; i < len(name); i++ {
		if !alphanumeric(name[i]) && strings.IndexByte(also, name[i]) < 0 {
			return fmt.Errorf("%w: %s name %q may hold letters, digits and %q only", ErrBadName, kind, name, also)
		}
	}
	return nil
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
