package admission

// Undivide lets the limits of a scope be for whoever comes, and not divided among flows.
func (s *Scope) Undivide() { s.rules.Load().sharing = nil }
