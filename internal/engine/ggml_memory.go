//go:build !noengine && cgo

package engine

/*
#include <stdlib.h>
#if defined(__GLIBC__)
#include <malloc.h>
static void keep_large_blocks_apart(void) {
	mallopt(M_MMAP_THRESHOLD, 4 << 20);
	mallopt(M_TRIM_THRESHOLD, 32 << 20);
}
static void give_back(void) { malloc_trim(0); }
#else
static void keep_large_blocks_apart(void) {}
static void give_back(void) {}
#endif
*/
import "C"

import "sync"

// Weights are allocated with malloc. By default glibc learns from the first
// large block that is freed to keep blocks of that size in its heaps, where
// the holes left by unloaded layers are not returned to the system: a node
// would exceed its budget after a few re-plans. So large blocks are always
// mapped by themselves, and after unloading the rest is given back.

// separateLargeBlocks sets the process's malloc up, once.
var separateLargeBlocks = sync.OnceFunc(func() { C.keep_large_blocks_apart() })

// returnFreeMemory gives freed memory back to the system.
func returnFreeMemory() { C.give_back() }
