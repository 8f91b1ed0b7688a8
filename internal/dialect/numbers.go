package dialect

import "bytes"

// A number is a count of tokens, or another number, that answers report. The dialects add those that they alone read.
type number uint8

const (
	noNumber         number = iota // is never reported
	promptTokens                   // includes cached tokens
	completionTokens               // includes reasoning, with the exception that numbers.output handles
	totalTokens
	cachedTokens
	reasoningTokens
	inputTokens      // includes no tokens of cacheReadTokens and cacheWriteTokens
	outputTokens     // includes reasoning
	startedTokens    // the output count at the start of a stream: a part of the total
	cacheWriteTokens // written to a cache
	cacheReadTokens  // read from a cache

	// Parts of the numbers above.
	writtenTokens  // to a cache, included in the prompt
	cacheWriteHour // to a cache that is kept for an hour
	inputAudio
	inputImage
	cachedAudio
	outputAudio
	outputImage

	// What is no count of tokens.
	costTold     // the charge, in billionths of a dollar
	upstreamCost // the charge of the provider behind a reseller, in billionths of a dollar
	ownKey       // 1 if a reseller has called that provider with the caller's own key, else 0
	entryTokens  // the count of the entry that is being read: see endEntry

	webSearches  // that the provider has made
	fileSearches // in stored files
	codeRuns     // how often the provider has run code
	sharedNumbers
)

// maxNumbers bounds how many numbers there are: numbers.present has a bit for each.
const maxNumbers = 64

var lastNumber = sharedNumbers - 1

// newNumber returns a number that no other dialect uses.
func newNumber() number {
	lastNumber++
	if lastNumber >= roomForNumbers {
		panic("dialect: roomForNumbers must be higher")
	}
	return lastNumber
}

// newSum returns a number of which each value of a stream reports a part.
func newSum() number {
	n := newNumber()
	summedNumbers |= setOf(n)
	return n
}

var summedNumbers numberSet

// roomForNumbers is for the numbers of all dialects. It may be as high as maxNumbers; each costs a meter 16 bytes.
const roomForNumbers = 56

var _ [maxNumbers - roomForNumbers]struct{}

// numbers are the numbers that were reported.
type numbers struct {
	present numberSet
	n       [roomForNumbers]int64
}

// A numberSet has one bit for each number.
type numberSet uint64

// setOf returns the set of some numbers, without noNumber.
func setOf(list ...number) (s numberSet) {
	for _, n := range list {
		s |= 1 << n
	}
	return s &^ (1 << noNumber)
}

func (s *numbers) set(n number, v int64) { s.present |= 1 << n; s.n[n] = v }

// increase adds 1 to a number.
func (s *numbers) increase(n number) {
	if !s.has(n) {
		s.n[n] = 0
	}
	s.set(n, s.n[n]+1)
}

func (s *numbers) clear(n number) { s.present &^= 1 << n }

func (s *numbers) has(n number) bool { return s.present&(1<<n) != 0 }

// highest returns the highest of some numbers, or 0 if none of them was reported.
func (s *numbers) highest(list []number) (most int64) {
	for _, n := range list {
		most = max(most, s.n[n])
	}
	return most
}

// usageRules say what the numbers mean that a dialect alone reads. What is left out is noNumber.
type usageRules struct {
	input    number // tokens of the prompt, cached ones included
	toolUse  number // tokens of the prompt that input lacks
	cached   number
	output   number // generated tokens
	thoughts number // generated tokens that output may lack: they are in the total
	total    number // input, toolUse and all generated tokens

	ends    number // comes last of all, in an event without a type
	endsAll number // comes last if all answers have ended
}

// What the rules of all dialects say together.
var (
	allUsageRules    []*usageRules
	outputNumbers    = setOf(completionTokens, totalTokens, outputTokens)
	cachedNumbers    = []number{cachedTokens, cacheReadTokens}
	reasoningNumbers = []number{reasoningTokens}
	endNumbers       numberSet
	endAllNumbers    numberSet
)

// add adds the rules of a dialect.
func (r *usageRules) add() {
	if *r == (usageRules{}) {
		return
	}
	allUsageRules = append(allUsageRules, r)
	outputNumbers |= setOf(r.output, r.thoughts, r.total)
	cachedNumbers = append(cachedNumbers, r.cached)
	reasoningNumbers = append(reasoningNumbers, r.thoughts)
	endNumbers |= setOf(r.ends)
	endAllNumbers |= setOf(r.endsAll)
}

// generated returns the generated tokens by the rules of a dialect, if they were reported.
func (r *usageRules) generated(s *numbers) (int64, bool) {
	hasRest := s.has(r.total) && s.has(r.input)
	rest := max(0, s.n[r.total]-s.n[r.input]-s.n[r.toolUse])
	switch {
	case s.has(r.output) && hasRest && rest == s.n[r.output]:
		return rest, true
	case s.has(r.output):
		return s.n[r.output] + s.n[r.thoughts], true
	case hasRest:
		return max(rest, s.n[r.thoughts]), true
	}
	return s.n[r.thoughts], s.has(r.thoughts)
}

// input returns the tokens of the prompt, if they were reported.
func (s *numbers) input() (int64, bool) {
	switch {
	case s.has(promptTokens):
		return s.n[promptTokens], true
	case s.has(inputTokens):
		return s.n[inputTokens] + s.n[cacheWriteTokens] + s.n[cacheReadTokens], true
	}
	for _, r := range allUsageRules {
		if s.has(r.input) {
			return s.n[r.input] + s.n[r.toolUse], true
		}
	}
	return 0, false
}

// output returns the generated tokens, if they were reported. Some servers leave reasoning out of
// the completion tokens: where the total is more than the prompt and the completion, the rest was
// generated too.
func (s *numbers) output() (int64, bool) {
	hasRest := s.has(totalTokens) && s.has(promptTokens)
	rest := max(0, s.n[totalTokens]-s.n[promptTokens])
	switch {
	case s.has(completionTokens) && hasRest:
		return max(s.n[completionTokens], rest), true
	case s.has(completionTokens):
		return s.n[completionTokens], true
	case s.has(outputTokens):
		return s.n[outputTokens], true
	}
	for _, r := range allUsageRules {
		if n, ok := r.generated(s); ok {
			return n, true
		}
	}
	if !hasRest {
		return 0, false
	}
	return rest, true
}

// Some providers report parts of their counts in lists. Each entry names a kind of tokens and says
// how many there are: {"modality": "AUDIO", "tokenCount": 40}, or {"ttl": "1h", "inputTokens": 40}.
// Its members come in any order, so the entry counts when it ends.

// An entryNumber is the number that entries of a kind report. Entries of other kinds do not matter.
type entryNumber struct {
	kind   string
	number number
}

func (v *values) beginEntry() {
	v.entryKind.n = 0
	v.current.clear(entryTokens)
}

// endEntry records the number of an entry that has ended.
func (v *values) endEntry(entry *node) {
	if entry.counted {
		v.current.set(entryTokens, 0)
	}
	if !v.current.has(entryTokens) {
		return
	}
	v.current.clear(entryTokens)
	for _, e := range entry.entries {
		if bytes.EqualFold(v.entryKind.bytes(), []byte(e.kind)) {
			n := v.current.n[entryTokens]
			switch {
			case entry.counted:
				v.current.increase(e.number)
			case entry.sums && v.current.has(e.number):
				v.current.set(e.number, min(v.current.n[e.number]+n, maxNumber))
			default:
				v.current.set(e.number, n)
			}
		}
	}
}
