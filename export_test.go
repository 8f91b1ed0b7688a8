package ratelimit

// Waiting returns how many wait for a model.
func (rl *RateLimiter) Waiting(model string) int { return int(rl.find(model).line.length.Load()) }
