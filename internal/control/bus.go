package control

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// ErrNoResponder: nobody listens on the subject of a request.
var ErrNoResponder = errors.New("nobody answers there")

// A Message is what a subscription receives. Respond is nil when the sender
// wants no answer.
type Message struct {
	Subject string
	Data    []byte
	Respond func([]byte) error
}

// A Bus carries transient messages: health, commands, events. Delivery is at
// most once; nothing may depend on one message.
type Bus interface {
	Publish(subject string, data []byte) error
	// Subscribe calls fn, one message at a time, for each message on the
	// subject; '*' stands for one element of it. The returned function ends
	// the subscription; fn is not called after it returned, so it must not be
	// called from inside fn.
	Subscribe(subject string, fn func(Message)) (cancel func(), err error)
	// Request waits for one answer, until ctx ends; ErrNoResponder when
	// nobody listens.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
}

const subjectRoot = "hecate.v1"

// HealthSubject is where a node publishes its Health.
func HealthSubject(node string) string { return HealthOf(EscapeElement(node)) }

// CommandSubject is where a node answers commands.
func CommandSubject(node string) string { return CommandOf(EscapeElement(node)) }

// HealthOf is the health subject of an escaped node name, or of a pattern or
// template that stands for one.
func HealthOf(element string) string { return subjectRoot + ".node." + element + ".health" }

// CommandOf is the same for commands.
func CommandOf(element string) string { return subjectRoot + ".node." + element + ".cmd" }

// EchoSubject is where a gateway talks to itself, to know that it hears.
func EchoSubject(gateway string) string {
	return subjectRoot + ".gateway." + EscapeElement(gateway) + ".echo"
}

// AllHealth is the pattern of every node's health.
const AllHealth = subjectRoot + ".node.*.health"

// EscapeElement makes a name a single element of a subject or a key of a
// bucket: bytes other than letters, digits, '-' and '_' become "=XX". It is
// injective, so two names never share a subject.
func EscapeElement(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if c := name[i]; alphanumeric(c) || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

// UnescapeElement reverses EscapeElement.
func UnescapeElement(element string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(element); i++ {
		if element[i] != '=' {
			b.WriteByte(element[i])
			continue
		}
		if i+2 >= len(element) {
			return "", fmt.Errorf("element %q ends inside an escape", element)
		}
		c, err := hex.DecodeString(element[i+1 : i+3])
		if err != nil {
			return "", fmt.Errorf("element %q holds a bad escape: %w", element, err)
		}
		b.Write(c)
		i += 2
	}
	return b.String(), nil
}
