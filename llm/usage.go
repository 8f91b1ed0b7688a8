package llm

// Tokens is how many tokens a call uses, or is expected to use.
type Tokens struct {
	Input, Output int

	// FreeInput and FreeOutput are the tokens of these that the provider does not count towards its
	// limits, such as those of a cached prompt. The limits of a project count them.
	FreeInput, FreeOutput int

	// Cached and CacheWrite are the tokens of Input that were read from a cache and written to one,
	// and Reasoning are those of Output that are reasoning, all without the free ones. They matter
	// only to quotas with [TokenWeights].
	Cached, CacheWrite, Reasoning int
}

// CachedIsFree reports whether a provider does not count tokens that it reads from a cache towards
// its limits.
func CachedIsFree(p Provider) bool { return p.dialect().cachedIsFree }

// TellsCost reports whether a provider's responses report what calls have cost, in dollars. Other
// servers may mean something else by a member of the same name.
func TellsCost(p Provider) bool { return p.dialect().tellsCost }

// Usage is how many tokens a call has used, according to its response.
type Usage struct {
	Input      int // the prompt, cached tokens included; -1 where the response does not say
	Cached     int // the part of Input that was read from a cache
	CacheWrite int // the part of Input that was written to a cache

	CacheWriteHour int // the part of CacheWrite that is kept for an hour, and not for five minutes
	InputAudio     int // the part of Input that is audio
	CachedAudio    int // the part of InputAudio that was read from a cache
	InputImage     int // the part of Input that is images

	// Output is how many tokens were generated in all answers, reasoning included. Where the
	// response does not say, or was cut off, it is the fewest tokens that its text can have.
	Output    int
	Reasoning int // the part of Output that is reasoning

	OutputAudio int // the part of Output that is audio
	OutputImage int // the part of Output that is images

	// Units is what the call has used beside tokens. A negative number is one that the response does not report.
	Units Units

	// Drawn is what the model has used that generates images as a tool: see [Request]. It is no part of Input and Output.
	Drawn ToolTokens

	// Tier is the service tier that the response names, in lower case: "batch", "flex", "priority"
	// or "fast" if prices depend on it, and "standard" for every other. It is empty if the response
	// names none.
	Tier string

	// Cost is what the response says that the call has cost, in billionths of a dollar, rounded up,
	// if CostTold is set: see [TellsCost].
	Cost     int64
	CostTold bool

	// Exact reports whether Output is the provider's own count.
	Exact bool
}

// ToolTokens is how many tokens a model has used that the provider calls as a tool.
type ToolTokens struct {
	Input      int
	InputImage int // the part of Input that is images
	Output     int
	OutputText int // the part of Output that is text; the rest is images
}

// Tokens returns what was used, and the part of it that the provider does not count. Input is -1
// where it is unknown.
func (u Usage) Tokens(p Provider) Tokens { return u.TokensBy(p, TokenWeights{}) }

// TokensBy is Tokens for a quota with weights, and returns the parts that these tell apart. What has
// a weight is not free.
func (u Usage) TokensBy(p Provider, w TokenWeights) Tokens {
	t := Tokens{Input: u.Input, Output: u.Output}
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
	if p.dialect().outputIsFree && !w.Output.IsSet() {
		t.FreeOutput = u.Output - t.Reasoning
	}
	return t
}
