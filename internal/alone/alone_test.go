package alone

import (
	"os"
	"testing"
)

// ran is set by a test that runs alone, in the process in which it does.
var ran bool

func TestRunsInAProcessOfItsOwn(t *testing.T) {
	if Test(t) {
		ran = true
		return
	}
	if ran {
		t.Error("it ran in the process of the other tests")
	}
}

// TestFailing fails where it runs alone.
func TestFailing(t *testing.T) {
	if os.Getenv(mark) == t.Name() {
		t.Error("on purpose")
	}
}

func TestFailuresAreReported(t *testing.T) {
	for _, name := range []string{"TestFailing", "TestThatDoesNotExist"} {
		if run(t, name) == nil {
			t.Errorf("%s has passed", name)
		}
	}
}
