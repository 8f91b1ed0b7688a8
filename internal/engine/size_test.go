package engine

import (
	"testing"
	"unsafe"
)

// A reservation is allocated for each call, and Go's allocator has a header for objects of more than 512 bytes.
func TestReservationsAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(Reservation{}); size > 512 {
		t.Errorf("a reservation has %d bytes; want at most 512", size)
	}
}
