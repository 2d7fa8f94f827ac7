package stage

import (
	"encoding/binary"
	"fmt"
)

// Grow asks for so many cells in all, instead of those that the stage has.
type Grow struct{ Cells int }

// Grown is the answer: the cells that the stage has now. Fewer than were asked
// for means that there is no room for more; the stage goes on as it was.
type Grown struct{ Cells int }

// Append adds the message's bytes to b: kind u8, 3 zero bytes, cells u32.
func (g Grow) Append(b []byte) []byte { return appendCells(b, KindGrow, g.Cells) }

// Append adds the message's bytes to b: kind u8, 3 zero bytes, cells u32.
func (g Grown) Append(b []byte) []byte { return appendCells(b, KindGrown, g.Cells) }

func appendCells(b []byte, k Kind, cells int) []byte {
	b = append(b, byte(k), 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, uint32(cells))
}

// DecodeGrow reads a Grow.
func DecodeGrow(b []byte) (Grow, error) {
	n, err := decodeCells(KindGrow, b)
	return Grow{n}, err
}

// DecodeGrown reads the answer to a Grow: Grown, or the *Error that came instead.
func DecodeGrown(b []byte) (Grown, error) {
	if KindOf(b) == KindError {
		return Grown{}, DecodeError(b)
	}
	n, err := decodeCells(KindGrown, b)
	return Grown{n}, err
}

func decodeCells(k Kind, b []byte) (int, error) {
	if KindOf(b) != k || len(b) != 8 {
		return 0, fmt.Errorf("want a message %s, got %s of %d bytes", k, KindOf(b), len(b))
	}
	n := binary.LittleEndian.Uint32(b[4:])
	if n == 0 || n > 1<<30 {
		return 0, fmt.Errorf("%s: %d cells, want 1 to %d", k, n, 1<<30)
	}
	return int(n), nil
}
