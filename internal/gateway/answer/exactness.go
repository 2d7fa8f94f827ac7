package answer

import "sync"

// exactness collects the classes of the nodes that took part in one answer.
type exactness struct {
	mu    sync.Mutex
	class string
	mixed bool
}

// note takes the class of one more node; an empty class is one of its own.
func (e *exactness) note(class string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if class == "" || e.class != "" && e.class != class {
		e.mixed = true
	}
	e.class = class
}

func (e *exactness) one() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.mixed
}
