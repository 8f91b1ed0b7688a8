package store

// NewMemoryAt returns an empty store with another clock.
func NewMemoryAt(clock func() int64) *Memory {
	m := NewMemory()
	m.clock = clock
	return m
}
