package gateway

import (
	"os"
	"testing"

	"dappco.re/go/core/go-ratelimit/mockprovider"
)

// A state in memory leaves nothing behind, and nothing that was there is changed: a
// gateway once replaced the library's file.
func TestMemoryLeavesNothing(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Run("", func(t *testing.T) {
		r := newRig(t, oneOfEach, mockprovider.Config{})
		if a := r.post(t, chat, hello); a.status != 200 {
			t.Error(a)
		}
	})
	if left, err := os.ReadDir(home); len(left) > 0 || err != nil {
		t.Errorf("%v, %v", left, err)
	}
}
