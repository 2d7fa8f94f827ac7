//go:build !linux

package bench

import "syscall"

// endsWithUs keeps nothing from the child: a terminal's Ctrl-C reaches it too.
func endsWithUs() *syscall.SysProcAttr { return nil }
