package dialect

import "dappco.re/go/core/go-ratelimit/llm"

// CachedIsFree reports whether a provider does not count tokens that it reads from a cache towards
// its limits.
func CachedIsFree(p llm.Provider) bool { return dialectOf(p).cachedIsFree }

// TellsCost reports whether a provider's responses report what calls have cost, in dollars. Other
// servers may mean something else by a member of the same name.
func TellsCost(p llm.Provider) bool { return dialectOf(p).tellsCost }

// TokensOf returns what was used, and the part of it that the provider does not count. Input is -1 where it is unknown. For
// a quota with weights it returns the parts that have weights of their own, and what has a weight is not free.
func TokensOf(u llm.Usage, p llm.Provider, w llm.TokenWeights) llm.Tokens {
	t := llm.Tokens{Input: u.Input, Output: u.Output}
	cached := max(0, min(u.Cached, u.Input))
	switch {
	case w.CachedInput.IsSet():
		t.Cached = cached
	case CachedIsFree(p):
		t.FreeInput = cached
	}
	if w.CacheWrite.IsSet() {
		t.CacheWrite = max(0, min(u.CacheWrite, u.Input-cached))
	}
	if w.Reasoning.IsSet() {
		t.Reasoning = max(0, min(u.Reasoning, u.Output))
	}
	if dialectOf(p).outputIsFree && !w.Output.IsSet() {
		t.FreeOutput = u.Output - t.Reasoning
	}
	return t
}
