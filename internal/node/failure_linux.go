package node

import (
	"os"
	"runtime"
	"syscall"
)

// signalSelf signals this process through the calling thread. A signal to the
// process as a whole would stop it only when another thread comes to run, and
// this one would compute on meanwhile: past the token that was aimed at.
func signalSelf(sig syscall.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = syscall.Tgkill(os.Getpid(), syscall.Gettid(), sig)
}
