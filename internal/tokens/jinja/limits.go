package jinja

import (
	"context"
	"errors"
	"fmt"
)

// Limits bound one rendering. Zero values mean the defaults beside them.
type Limits struct {
	Steps  int // evaluated nodes and loop rounds: 1,000,000
	Output int // bytes of the rendered text, and of any single string: 8 MiB
	Work   int // bytes of all strings built on the way: 128 MiB
	Depth  int // nested macro calls: 32
}

// Bounds of what Parse accepts: real templates have a few KiB and nest a dozen
// levels; deeper ones would only serve to exhaust the stack.
const (
	maxSource  = 256 << 10
	maxNesting = 100
)

const (
	defaultSteps  = 1_000_000
	defaultOutput = 8 << 20
	defaultWork   = 128 << 20
	defaultDepth  = 32
)

func (l Limits) withDefaults() Limits {
	or := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	or(&l.Steps, defaultSteps)
	or(&l.Output, defaultOutput)
	or(&l.Work, defaultWork)
	or(&l.Depth, defaultDepth)
	return l
}

// ErrLimit is what errors.Is finds when a template ran into one of its Limits.
var ErrLimit = errors.New("template exceeded a limit")

// budget is what is left of the limits in one rendering.
type budget struct {
	ctx    context.Context
	limits Limits
	steps  int
	work   int
	depth  int
}

// step is paid for every node and every element touched.
func (b *budget) step(n int) error {
	before := b.steps
	b.steps += n
	if b.steps > b.limits.Steps {
		return fmt.Errorf("%w: %d steps", ErrLimit, b.limits.Steps)
	}
	if before>>10 != b.steps>>10 {
		return b.ctx.Err()
	}
	return nil
}

// fits checks the size of a string that grows bit by bit.
func (b *budget) fits(n int) error {
	if n > b.limits.Output {
		return fmt.Errorf("%w: a text of %d bytes, at most %d", ErrLimit, n, b.limits.Output)
	}
	return nil
}

// build is paid before n bytes of a string are made, or read at length.
func (b *budget) build(n int) error {
	if err := b.fits(n); err != nil {
		return err
	}
	b.work += n
	if b.work > b.limits.Work {
		return fmt.Errorf("%w: %d bytes of text built on the way", ErrLimit, b.limits.Work)
	}
	return nil
}

func (b *budget) enter() error {
	b.depth++
	if b.depth > b.limits.Depth {
		return fmt.Errorf("%w: %d nested calls", ErrLimit, b.limits.Depth)
	}
	return nil
}

func (b *budget) leave() { b.depth-- }
