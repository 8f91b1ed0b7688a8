package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A hunt finds a test that fails with one number of threads alone, and says how to repeat it.
func TestHunt(t *testing.T) {
	dir, logs := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.test/m\n\ngo 1.26\n", "m_test.go": `package m

import (
	"runtime"
	"testing"
)

func TestEight(t *testing.T) {
	t.Run("part", func(t *testing.T) {
		if runtime.GOMAXPROCS(0) == 8 {
			t.Error("by chance")
		}
	})
}

func TestSteady(t *testing.T) {}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run([]string{"-modules", dir, "-rounds", "4", "-calm", "-logs", logs}, &out); err == nil {
		t.Error("nothing was found")
	}
	for _, want := range []string{`round 2 of 4: 0 failures`, `TestEight \(1 times\)\n +GOMAXPROCS=8 go test -race -short -shuffle=\d+ example.test/m`, `TestEight/part \(1 times\)`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if kept, err := filepath.Glob(filepath.Join(logs, "example.test_m-*.log")); err != nil || len(kept) != 1 {
		t.Errorf("%v: the logs are %v", err, kept)
	}
	out.Reset()
	if err := run([]string{"-modules", dir, "-rounds", "1", "-logs", logs}, &out); err != nil || !strings.Contains(out.String(), "no test of 1 packages has failed") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}
