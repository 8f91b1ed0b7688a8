package llm

// Tokens is how many tokens a call uses, or is thought to use.
type Tokens struct {
	Input, Output int

	// FreeInput and FreeOutput are how many of these the provider does not count
	// towards its limits, such as a prompt that it has cached. The limits of a
	// project count them.
	FreeInput, FreeOutput int
}

// CachedIsFree reports whether a provider does not count what it reads from a cache
// towards its limits.
func CachedIsFree(p Provider) bool { return p == Anthropic || p == Groq || p == Bedrock }

// Usage is what a response says that its call has used.
type Usage struct {
	Input      int // of the prompt, with what is cached; -1 where the response does not say
	Cached     int // of Input, what was read from a cache
	CacheWrite int // of Input, what was written to a cache

	// Output is what was generated, with reasoning, in all answers. Where the
	// response does not say, or has been cut off, it is the least that it must
	// be by what was seen.
	Output    int
	Reasoning int // of Output

	// Exact reports whether Output is what the provider has said.
	Exact bool
}

// Tokens returns what was used, and what of it the provider counts. Input is -1
// where it is not known.
func (u Usage) Tokens(p Provider) Tokens {
	t := Tokens{Input: u.Input, Output: u.Output}
	if CachedIsFree(p) {
		t.FreeInput = max(0, min(u.Cached, u.Input))
	}
	if p == Gemini { // counts input alone
		t.FreeOutput = u.Output
	}
	return t
}
