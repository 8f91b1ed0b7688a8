package gateway_test

import (
	"bytes"
	"slices"
	"testing"
)

// What is no call of a model passes as it is, and counts as a request of the project's.
func TestPass(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, with(ample, "defaults: {requests_per_minute: 100}"))
		n := 0
		for _, call := range []string{"models", "upload", "count"} {
			if !slices.Contains(s.calls, call) {
				continue
			}
			n++
			without, with := s.both(t, r, call, "")
			compare(t, call, "", without, with)
			if got := r.provider.received()[n-1]; !bytes.Equal(got.body, r.without.received()[n-1].body) && call != "upload" {
				t.Errorf("%s: the provider has got %s", call, got.body)
			}
		}
		d, err := r.Projects().Peek(t.Context(), project)
		if err != nil {
			t.Fatal(err)
		}
		if left := d.Windows()[0].Remaining; n == 0 || left != int64(100-n) {
			t.Errorf("%d requests were made, and %d of 100 are left", n, left)
		}
		if s := r.Models().Stats(s.model); s.RPM != 0 || s.TPM != 0 {
			t.Errorf("%+v", s)
		}
	})
}
