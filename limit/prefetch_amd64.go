package limit

import "unsafe"

// prefetch begins to load the memory at p into the processor's cache, and does not wait
// for it.
//
//go:noescape
func prefetch(p unsafe.Pointer)
