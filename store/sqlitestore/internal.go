package sqlitestore

// Internal returns what the store keeps beside its counters: settings, messages, and what calls have used by hour and by
// day. It is for the packages of this module alone.
func (s *Store) Internal() any { return internals{s} }

// internals has the methods of a Store that are for the packages of this module alone.
type internals struct{ *Store }
