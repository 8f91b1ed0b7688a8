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

	// Drawn is what the model has used that generates images as a tool. It is no part of Input and Output.
	Drawn ToolTokens

	// Tier is the service tier that the response names, in lower case: "batch", "flex", "priority"
	// or "fast" if prices depend on it, and "standard" for every other. It is empty if the response
	// names none.
	Tier string

	// Cost is what the response says that the call has cost, in billionths of a dollar, rounded up,
	// if CostTold is set.
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

// Maxima is how large the calls of a model can become, as its provider publishes it. 0 is not known.
type Maxima struct {
	Context int `json:"context,omitempty"`    // the context window: the most tokens of a prompt and one answer together
	Output  int `json:"max_output,omitempty"` // the most tokens of one answer
}
