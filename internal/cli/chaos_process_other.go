//go:build !linux

package cli

import (
	"fmt"
	"os/exec"
	"strings"
)

// commandLine asks ps; arguments with spaces come apart, which worker names have none of.
func commandLine(pid int) ([]string, error) {
	out, err := exec.Command("ps", "-o", "args=", "-p", fmt.Sprint(pid)).Output()
	if err != nil {
		return nil, fmt.Errorf("ask ps: %w", err)
	}
	return strings.Fields(string(out)), nil
}
