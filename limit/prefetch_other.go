//go:build !amd64

package limit

import "unsafe"

func prefetch(unsafe.Pointer) {}
