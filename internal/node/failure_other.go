//go:build !linux

package node

import (
	"os"
	"syscall"
)

// signalSelf signals this process. When a stop takes hold is the system's choice.
func signalSelf(sig syscall.Signal) { _ = syscall.Kill(os.Getpid(), sig) }
