package cli

import (
	"fmt"
	"os"
	"strings"
)

// commandLine reads what a process was started with.
func commandLine(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00"), nil
}
