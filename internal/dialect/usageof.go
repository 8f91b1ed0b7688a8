package dialect

import (
	"math"

	"dappco.re/go/core/go-ratelimit/llm"
)

// usage returns what the call has used. unfinished is the text of a value that was cut off.
func (t *tally) usage(unfinished text) llm.Usage {
	u := llm.Usage{Input: -1, Tier: t.tier.told()}
	s := &t.reported
	if in, ok := s.input(); ok {
		u.Input = int(min(in, math.MaxInt))
	}
	s.inputParts(&u)

	out, ok := s.output()
	written := t.written.plus(unfinished)
	u.Output = int(min(out, math.MaxInt))
	u.Exact = ok && !t.textSince && !t.interim && unfinished.pieces == 0 && (out > 0 || written.pieces == 0)
	if !u.Exact {
		u.Output = max(u.Output, int(s.n[startedTokens]), written.least())
	}
	s.outputParts(&u)

	if u.CostTold = s.has(costTold); u.CostTold {
		u.Cost = s.n[costTold]
		if s.n[ownKey] == 1 { // the reseller has charged its fee alone
			u.Cost += s.n[upstreamCost]
		}
	}
	return u
}

// inputParts fills in the parts of the input, none of which is more than the whole.
func (s *numbers) inputParts(u *llm.Usage) {
	all := max(u.Input, 0)
	u.Cached = min(all, int(s.highest(cachedNumbers)))
	u.CacheWrite = min(all-u.Cached, int(max(s.n[cacheWriteTokens], s.n[writtenTokens])))
	u.CacheWriteHour = min(u.CacheWrite, int(s.n[cacheWriteHour]))
	u.InputAudio = min(all, int(s.n[inputAudio]))
	u.InputImage = min(all-u.InputAudio, int(s.n[inputImage]))
	overlap := u.InputAudio + u.Cached - all // audio and cached tokens together exceed all by this: at least so many tokens are both
	u.CachedAudio = min(max(int(s.n[cachedAudio]), overlap), u.InputAudio, u.Cached)
}

// outputParts fills in the parts of the output, which together are not more than the whole.
func (s *numbers) outputParts(u *llm.Usage) {
	u.Reasoning = min(u.Output, int(s.highest(reasoningNumbers)))
	u.OutputAudio = min(u.Output-u.Reasoning, int(s.n[outputAudio]))
	u.OutputImage = min(u.Output-u.Reasoning-u.OutputAudio, int(s.n[outputImage]))
}
