package gateway_test

import (
	"fmt"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
)

// A client that leaves in mid-stream ends the call upstream and gives back its place at
// once. It is charged all the output that it allows: only the prompt, whose tokens a stream may
// report as it begins, is corrected.
func TestLeave(t *testing.T) {
	const allowed = 5000
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, with(ample))
		k := r.through(s, "open")
		k.Mock = fmt.Sprintf("output=%d fault=stall after=%d", allowed, map[string]int{"openai": 6, "anthropic": 8, "gemini": 5}[s.provider])
		if a := s.do(t, k); a.Error != nil {
			t.Fatalf("%+v", a.Error)
		}
		reserved := r.Models().Stats(s.model)
		if reserved.Concurrent != 1 || r.provider.Active() != 1 || r.Active() != 1 {
			t.Fatalf("the stream is not open: %+v", reserved)
		}
		if a := s.do(t, r.through(s, "leave")); a.Error != nil {
			t.Fatalf("%+v", a.Error)
		}
		r.idle(t)
		left, sent := r.Models().Stats(s.model), r.provider.Totals()[s.model]
		if left.Concurrent != 0 || left.TPM > max(reserved.TPM, allowed+100) || left.TPM < reserved.TPM-100 {
			t.Errorf("%+v while the stream was open, then %+v; the provider has sent %+v", reserved, left, sent)
		}
		rec := r.Recent("", 0, 1)[0]
		if rec.Outcome != gateway.Left || rec.Output != allowed || sent.Output != 5 {
			t.Errorf("%+v; the provider has sent %+v", rec, sent)
		}
	})
}
