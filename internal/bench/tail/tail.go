// Package tail keeps the end of what was written: what a process said last
// before it ended tells why.
package tail

import "sync"

// Size is how many bytes are kept.
const Size = 16 << 10

// Writer keeps the last Size bytes. It is safe for concurrent use, and ready as
// it is.
type Writer struct {
	mu sync.Mutex
	b  []byte
}

// Write never fails.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, p...)
	if len(w.b) > 2*Size {
		w.b = append([]byte(nil), w.b[len(w.b)-Size:]...)
	}
	return len(p), nil
}

func (w *Writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.b[max(0, len(w.b)-Size):])
}
