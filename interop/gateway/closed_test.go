package gateway_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
)

// SDKs try again where a server closes before it answers: the gateway's 502 asked them not
// to.
func TestClosedBeforeTheAnswerIsTriedAgain(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		if !s.retries {
			t.Skip("it tries nothing again")
		}
		r := newRig(t, with(ample))
		var asked atomic.Int64
		r.provider.listening.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if asked.Add(1) == 1 {
				panic(http.ErrAbortHandler)
			}
			r.provider.ServeHTTP(w, req)
		})
		k := r.through(s, "whole")
		k.Retries = 2
		if a := s.do(t, k); a.Error != nil {
			t.Fatalf("%+v", a.Error)
		}
		r.idle(t)
		all := r.Recent("", 0, 10)
		if len(all) != 2 || all[0].Outcome != gateway.Failed || all[0].Status != http.StatusBadGateway || all[1].Outcome != gateway.Passed {
			t.Errorf("%+v", all)
		}
	})
}
