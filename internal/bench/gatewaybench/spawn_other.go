//go:build !linux

package gatewaybench

import "syscall"

// endsWithUs keeps nothing from the child: a terminal's Ctrl-C reaches it too.
func endsWithUs() *syscall.SysProcAttr { return nil }
