package pool

import "sync/atomic"

// slots is the index conn_id -> session. A conn_id is a slot number and, above
// it, how often the slot was used, so a late frame never meets the slot's next
// tenant. Readers take no lock; writers hold the registry's.
type slots struct {
	chunks [slotChunks]atomic.Pointer[slotChunk]
	free   []uint32 // slots without tenant
	used   uint32   // slots that ever had one
}

type slotChunk struct {
	tenant [slotsPerChunk]atomic.Pointer[session]
	uses   [slotsPerChunk]uint64
}

const (
	slotBits      = 20 // a million sessions at once
	slotsPerChunk = 1024
	slotChunks    = 1 << slotBits / slotsPerChunk
)

func (t *slots) find(id uint64) *session {
	slot := uint32(id & (1<<slotBits - 1))
	chunk := t.chunks[slot/slotsPerChunk].Load()
	if chunk == nil {
		return nil
	}
	if s := chunk.tenant[slot%slotsPerChunk].Load(); s != nil && s.id == id {
		return s
	}
	return nil
}

// reserve returns an id that was never used before; false: all slots are taken.
func (t *slots) reserve() (uint64, bool) {
	var slot uint32
	switch n := len(t.free); {
	case n > 0:
		slot, t.free = t.free[n-1], t.free[:n-1]
	case t.used < 1<<slotBits:
		slot = t.used
		t.used++
	default:
		return 0, false
	}
	chunk := t.chunks[slot/slotsPerChunk].Load()
	if chunk == nil {
		chunk = new(slotChunk)
		t.chunks[slot/slotsPerChunk].Store(chunk)
	}
	chunk.uses[slot%slotsPerChunk]++
	return chunk.uses[slot%slotsPerChunk]<<slotBits | uint64(slot), true
}

func (t *slots) place(s *session) {
	slot := uint32(s.id & (1<<slotBits - 1))
	t.chunks[slot/slotsPerChunk].Load().tenant[slot%slotsPerChunk].Store(s)
}

// vacate frees the slot for another use.
func (t *slots) vacate(s *session) {
	slot := uint32(s.id & (1<<slotBits - 1))
	t.chunks[slot/slotsPerChunk].Load().tenant[slot%slotsPerChunk].Store(nil)
	t.free = append(t.free, slot)
}
