//go:build !linux

package cli

import "syscall"

// dieWithParent keeps terminal signals from the children: their leash ends them.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
