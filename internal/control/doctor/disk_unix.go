//go:build unix

package doctor

import (
	"fmt"
	"syscall"
)

// freeDisk is what an ordinary user may still write, in bytes.
func freeDisk(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("free room of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
