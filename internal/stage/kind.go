package stage

import "fmt"

// Kind is a message's first byte.
type Kind byte

// From gateway to node, then from node to gateway.
const (
	KindOpen     Kind = 1
	KindStep     Kind = 2
	KindTruncate Kind = 3
	KindGrow     Kind = 4

	KindOpened Kind = 16
	KindHidden Kind = 17
	KindToken  Kind = 18
	KindDone   Kind = 19
	KindError  Kind = 20
	KindGrown  Kind = 21
)

var kindNames = map[Kind]string{
	KindOpen: "open", KindStep: "step", KindTruncate: "truncate", KindGrow: "grow",
	KindOpened: "opened", KindHidden: "hidden", KindToken: "token", KindDone: "done", KindError: "error", KindGrown: "grown",
}

func (k Kind) String() string {
	if s, ok := kindNames[k]; ok {
		return s
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// KindOf tells what a message is; 0 for an empty one.
func KindOf(b []byte) Kind {
	if len(b) == 0 {
		return 0
	}
	return Kind(b[0])
}
