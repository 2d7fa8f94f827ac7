//go:build unix

package measure

import (
	"syscall"
	"time"
)

// CPUTime is the processor time of this process so far, in user and kernel; 0
// where it is not known.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
