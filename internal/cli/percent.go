package cli

import (
	"fmt"
	"io"
)

// percent shows on one line of a screen how far something is.
type percent struct {
	w    io.Writer
	what string
	on   bool
	last int64
}

// tell shows a step; one that shows nothing new is left out.
func (p *percent) tell(done, total int64) {
	if !p.on || total <= 0 {
		return
	}
	if now := 100 * done / total; now != p.last {
		p.last = now
		fmt.Fprintf(p.w, "\r%s: %d%%", p.what, now)
	}
}

// end leaves the line.
func (p *percent) end() {
	if p.on && p.last > 0 {
		fmt.Fprintln(p.w)
	}
}
