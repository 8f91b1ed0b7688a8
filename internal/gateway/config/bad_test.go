package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

var update = flag.Bool("update", false, "write what the errors are in place of what they should be")

// Each file in testdata/bad has one mistake; the file beside it has the expected error.
func TestBad(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c, err := config.Parse(name+".yaml", text)
			if err == nil || c != nil {
				t.Fatalf("it passed as %+v, %v", c, err)
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".txt", err.Error()+"\n")
			inOrder(t, err)
			for _, hidden := range []string{"hunter2", "hun/ter2", "plain", "sight", "%!"} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("it shows %q: %v", hidden, err)
				}
			}
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// inOrder fails the test unless an error joins faults in the order of their lines.
func inOrder(t *testing.T, err error) {
	t.Helper()
	all := faultsOf(err)
	if len(all) == 0 {
		t.Fatalf("%T has no faults", err)
	}
	line := 0
	for i, f := range all {
		if f.Line < line || f.Problem == "" {
			t.Errorf("fault %d: %+v comes after line %d", i, f, line)
		}
		line = f.Line
		if !errors.Is(err, f) {
			t.Errorf("fault %d is not among what is wrapped", i)
		}
	}
}
