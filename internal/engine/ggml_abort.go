//go:build kernelabort && !noengine && cgo

package engine

// #include <stdlib.h>
import "C"

import "os"

// abortFile names a file whose removal makes the kernels abort once, in the
// process that removed it. Only programs built with the tag kernelabort, which
// is for tests, know it.
const abortFile = "HECATE_KERNEL_ABORT"

// deliberateAbort ends the process as a failed assertion of the kernels does.
func deliberateAbort() {
	if path := os.Getenv(abortFile); path != "" && os.Remove(path) == nil {
		C.abort()
	}
}
