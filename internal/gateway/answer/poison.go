package answer

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"time"
)

// poisonTime is how long the fingerprint of a query of death is refused.
const poisonTime = 10 * time.Minute

// maxPoison bounds the memory of an attacker's collection; the oldest goes first.
const maxPoison = 1024

// Poison remembers queries of death by the hash of model and prompt. The zero
// value is ready.
type Poison struct {
	mu    sync.Mutex
	until map[[32]byte]time.Time
	order [][32]byte
}

func (p *Poison) check(j Job) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.until[fingerprint(j)]; ok && time.Now().Before(t) {
		return fmt.Errorf("this prompt ended two nodes and is refused for %s: %w", time.Until(t).Round(time.Second), ErrQueryOfDeath)
	}
	return nil
}

func (p *Poison) add(j Job) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[[32]byte]time.Time{}
	}
	f := fingerprint(j)
	if _, known := p.until[f]; !known {
		p.order = append(p.order, f)
	}
	p.until[f] = time.Now().Add(poisonTime)
	for len(p.order) > maxPoison {
		delete(p.until, p.order[0])
		p.order = p.order[1:]
	}
}

func fingerprint(j Job) [32]byte {
	h := sha256.New()
	h.Write([]byte(j.Model))
	for _, t := range j.Prompt {
		_ = binary.Write(h, binary.LittleEndian, t)
	}
	return [32]byte(h.Sum(nil))
}
