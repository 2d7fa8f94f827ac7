package gatewaybench

import "syscall"

// endsWithUs keeps the terminal's Ctrl-C from the child, which is ended in order,
// and makes the kernel end it when this process dies without doing so.
func endsWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
