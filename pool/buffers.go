package pool

import (
	"math/bits"
	"sync"

	"hecate/pool/wire"
)

// Buffer classes are powers of two from 64 B to 4 MiB, so a buffer wastes at
// most half of itself. Larger messages are rare enough for the allocator.
const (
	minClassBits = 6
	maxClassBits = 22
	classes      = maxClassBits - minClassBits + 1
)

// buffer is a piece of memory with one owner at a time. It is passed by
// pointer because a slice in a sync.Pool would allocate its header, and it is
// its own queue entry.
type buffer struct {
	b     []byte
	next  *buffer    // in the queue it stands in
	flags wire.Flags // of the frame it is
	open  bool       // it stands for an OPEN, which carries no bytes of ours
}

// store keeps free buffers by class. What it keeps is dropped by the garbage
// collector when nobody asks for it; what is in use is budgeted by queues and
// windows.
type store struct {
	free   [classes]sync.Pool
	shells sync.Pool // *buffer without memory
}

// get returns a buffer of length 0 and a capacity of at least n.
func (st *store) get(n int) *buffer {
	class := classFor(n)
	if class >= classes {
		return &buffer{b: make([]byte, 0, n)}
	}
	if b, ok := st.free[class].Get().(*buffer); ok {
		return b
	}
	return &buffer{b: make([]byte, 0, 1<<(class+minClassBits))}
}

// copyOf returns a buffer holding p.
func (st *store) copyOf(p []byte) *buffer {
	b := st.get(len(p))
	b.b = append(b.b, p...)
	return b
}

// put takes a buffer back. Nobody may use it or its memory afterwards.
func (st *store) put(b *buffer) {
	if b == nil {
		return
	}
	if class := exactClass(cap(b.b)); class >= 0 {
		*b = buffer{b: b.b[:0]}
		st.free[class].Put(b)
	}
}

// detach separates the memory from its buffer: the caller owns the slice.
func (st *store) detach(b *buffer) []byte {
	p := b.b
	*b = buffer{}
	st.shells.Put(b)
	return p
}

// attach takes back a slice that detach gave away; others are left to the
// garbage collector.
func (st *store) attach(p []byte) {
	class := exactClass(cap(p))
	if class < 0 {
		return
	}
	b, ok := st.shells.Get().(*buffer)
	if !ok {
		b = new(buffer)
	}
	b.b = p[:0]
	st.free[class].Put(b)
}

// grow returns b, or a larger copy of it, with room for n more bytes.
func (st *store) grow(b *buffer, n int) *buffer {
	if cap(b.b)-len(b.b) >= n {
		return b
	}
	bigger := st.get(max(len(b.b)+n, 2*cap(b.b)))
	bigger.b = append(bigger.b, b.b...)
	st.put(b)
	return bigger
}

func classFor(n int) int {
	if n <= 1<<minClassBits {
		return 0
	}
	return bits.Len(uint(n-1)) - minClassBits
}

// exactClass is the class whose buffers have exactly this capacity, or -1.
func exactClass(capacity int) int {
	if capacity < 1<<minClassBits || capacity > 1<<maxClassBits || capacity&(capacity-1) != 0 {
		return -1
	}
	return bits.Len(uint(capacity)) - 1 - minClassBits
}
