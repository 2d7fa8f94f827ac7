//go:build !unix

package poolbench

import "time"

// cpuTime is not known here; CPU per frame is then reported as 0 and left out.
func cpuTime() time.Duration { return 0 }
