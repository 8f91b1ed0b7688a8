package llm

// Tokens is how many tokens a call uses, or is expected to use.
type Tokens struct {
	Input, Output int

	// FreeInput and FreeOutput are the tokens of these that the provider does not count towards its
	// limits, such as those of a cached prompt. The limits of a project count them.
	FreeInput, FreeOutput int
}

// CachedIsFree reports whether a provider does not count tokens that it reads from a cache towards
// its limits.
func CachedIsFree(p Provider) bool { return p == Anthropic || p == Groq || p == Bedrock }

// Usage is how many tokens a call has used, according to its response.
type Usage struct {
	Input      int // the prompt, cached tokens included; -1 where the response does not say
	Cached     int // the part of Input that was read from a cache
	CacheWrite int // the part of Input that was written to a cache

	// Output is how many tokens were generated in all answers, reasoning included. Where the
	// response does not say, or was cut off, it is the fewest tokens that its text can have.
	Output    int
	Reasoning int // the part of Output that is reasoning

	// Exact reports whether Output is the provider's own count.
	Exact bool
}

// Tokens returns what was used, and the part of it that the provider does not count. Input is -1
// where it is unknown.
func (u Usage) Tokens(p Provider) Tokens {
	t := Tokens{Input: u.Input, Output: u.Output}
	if CachedIsFree(p) {
		t.FreeInput = max(0, min(u.Cached, u.Input))
	}
	if p == Gemini { // Gemini counts input alone
		t.FreeOutput = u.Output
	}
	return t
}
