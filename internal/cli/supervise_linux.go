package cli

import "syscall"

// dieWithParent makes the kernel end a child whose parent dies, even one that
// was stopped and cannot see its leash.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
