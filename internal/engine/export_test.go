package engine

// Undivided lets the limits of an engine's shared scopes be for whoever comes, and not divided among
// flows.
func (e *Engine) Undivided() { e.undivided = true }
