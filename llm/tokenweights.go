package llm

// TokenWeights says as how many tokens of a quota each kind of token counts, for a provider that
// does not count every token as one. Weights that are not set leave things as they are.
type TokenWeights struct {
	CachedInput Weight `yaml:"cached_input,omitempty" json:"cached_input,omitzero"` // of the prompt, read from a cache
	CacheWrite  Weight `yaml:"cache_write,omitempty" json:"cache_write,omitzero"`   // of the prompt, written to a cache
	Output      Weight `yaml:"output,omitempty" json:"output,omitzero"`
	Reasoning   Weight `yaml:"reasoning,omitempty" json:"reasoning,omitzero"` // of the output; not set: as other output
}

// IsZero reports whether no weight is set.
func (w TokenWeights) IsZero() bool { return w == TokenWeights{} }

// Count returns how many tokens a quota with these weights counts, input and output each rounded up
// once. It is -1 where the number is not known, and at most 2^53. Free tokens do not count.
func (w TokenWeights) Count(t Tokens) (input, output int64) {
	input, output = -1, -1
	if t.Input >= 0 {
		rest := within(t.Input, maxNumber)
		rest -= within(t.FreeInput, rest)
		input = rest
		if !w.IsZero() {
			cached := within(t.Cached, rest)
			input = w.input(rest, cached, within(t.CacheWrite, rest-cached))
		}
	}
	if t.Output >= 0 {
		rest := within(t.Output, maxNumber)
		rest -= within(t.FreeOutput, rest)
		output = rest
		if !w.IsZero() {
			output = w.output(rest, within(t.Reasoning, rest))
		}
	}
	return input, output
}

// within returns n, or the nearest number from 0 to most.
func within(n int, most int64) int64 { return min(max(int64(n), 0), most) }

// input returns as how many tokens a prompt counts, of which so many are cached and written.
func (w TokenWeights) input(all, cached, written int64) int64 {
	var sum weighed
	sum.add(all-cached-written, one)
	sum.add(cached, w.CachedInput.or(one))
	sum.add(written, w.CacheWrite.or(one))
	return sum.tokens()
}

// output returns as how many tokens an output counts, of which so many are reasoning.
func (w TokenWeights) output(all, reasoning int64) int64 {
	var sum weighed
	usual := w.Output.or(one)
	sum.add(all-reasoning, usual)
	sum.add(reasoning, w.Reasoning.or(usual))
	return sum.tokens()
}

// Dearest returns an estimate with its tokens as the kinds that count most. What is expected to be
// free because it is cached counts as cached, if that has a weight.
func (w TokenWeights) Dearest(t Tokens) Tokens {
	if w.CachedInput.IsSet() {
		t.Cached, t.FreeInput = t.Cached+t.FreeInput, 0
	}
	if w.Output.IsSet() || w.Reasoning.IsSet() {
		t.FreeOutput = 0
	}
	if w.CacheWrite > one {
		t.CacheWrite = t.Input - t.FreeInput - t.Cached
	}
	if w.CachedInput > max(w.CacheWrite, one) {
		t.Cached, t.CacheWrite = t.Input-t.FreeInput, 0
	}
	if w.Reasoning > w.Output.or(one) {
		t.Reasoning = t.Output - t.FreeOutput
	}
	return t
}

// Most returns as how many tokens so many can count at most, whatever they are.
func (w TokenWeights) Most(n int) int64 {
	input, _ := w.Count(w.Dearest(Tokens{Input: n}))
	_, output := w.Count(w.Dearest(Tokens{Output: n}))
	return max(input, output)
}

// LeastInput returns as how many tokens a prompt of so many counts at least.
func (w TokenWeights) LeastInput(n int) int {
	var sum weighed
	sum.add(within(n, maxNumber), min(w.CachedInput.or(one), w.CacheWrite.or(one), one))
	return int(sum.tokens())
}

// AtMost returns a [TokenWeights.Dearest] estimate with so many of its tokens free that no more than
// input and output count.
func (w TokenWeights) AtMost(t Tokens, input, output int) Tokens {
	countedInput, countedOutput := w.Count(t)
	if countedInput > int64(input) {
		rest := quotient(input, max(w.CachedInput, w.CacheWrite, one))
		t.FreeInput, t.Cached, t.CacheWrite = t.Input-rest, 0, min(t.CacheWrite, rest)
	}
	if countedOutput > int64(output) {
		rest := quotient(output, max(w.Output.or(one), w.Reasoning))
		t.FreeOutput, t.Reasoning = t.Output-rest, min(t.Reasoning, rest)
	}
	return t
}
