package engine

// Undivided lets the limits of an engine's shared scopes be for whoever comes, and not divided among
// flows.
func (e *Engine) Undivided() { e.undivided = true }

// AskOf returns what a call asks for. Once it was called, only changes of the ask count.
func AskOf(c *Call) *Ask {
	c.check(nil)
	return &c.ask
}

// SetPart lets a call be charged to a part of the limits.
func SetPart(c *Call, p Part) { c.part = p }

// Invalid returns why a call cannot be decided on, or nil.
func Invalid(c *Call) error { return c.check(nil) }
