package sqlitestore

// inside returns what a store has for the packages of this module.
func inside(s *Store) internals { return internals{s} }
