package node

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"hecate/internal/engine"
)

// freeShare of the free memory is what a node takes unless told otherwise: the
// machine has other things to do.
const freeShare = 0.7

// FreeMemory suggests a budget from what is free now, in bytes.
func FreeMemory() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:")
		if !ok {
			continue
		}
		var kib int64
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			return 0, fmt.Errorf("read MemAvailable: %w", err)
		}
		return int64(freeShare * float64(kib) * 1024), nil
	}
	return 0, errors.New("the system does not say how much memory is free")
}

// WarnSlowKernels says loudly when this binary computes many times slower than
// it could.
func WarnSlowKernels(log *slog.Logger) {
	if !engine.FastKernels {
		log.Warn("SLOW KERNELS: this binary was built without the flags that `make build` sets; it computes about six times slower", "kernels", engine.KernelName())
	}
}
