package store

// Internal returns what the store keeps beside its counters, such as what calls have used by hour and by day. It is for
// the packages of this module alone.
func (m *Memory) Internal() any { return memoryInternals{m} }

// memoryInternals has the methods of a Memory that are for the packages of this module alone.
type memoryInternals struct{ *Memory }
