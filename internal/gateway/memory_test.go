package gateway

import (
	"os"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// A state in memory writes no file. Once, a gateway replaced the library's own file.
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
