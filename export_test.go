package ratelimit

// Waiting returns how many wait for a model.
func (rl *RateLimiter) Waiting(model string) int { return rl.find(model).line.Waiting() }
