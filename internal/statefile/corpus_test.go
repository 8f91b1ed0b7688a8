package statefile

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the files give in place of what they should give")

// The files in testdata/taken are written in ways that Write does not use and that Read has
// always accepted. Beside each file is the text that Write writes for its content.
func TestTaken(t *testing.T) {
	corpus(t, "taken", func(t *testing.T, name, text string) string {
		f, err := parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		written, err := format(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(written)
	})
}

// The files in testdata/refused are YAML, or nearly so, and Read has never accepted them. Beside
// each file is the error.
func TestRefused(t *testing.T) {
	corpus(t, "refused", func(t *testing.T, name, text string) string {
		f, err := parse(name, text)
		if err == nil {
			t.Fatalf("it passed as %+v", f)
		}
		return err.Error() + "\n"
	})
}

func corpus(t *testing.T, folder string, read func(t *testing.T, name, text string) string) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, golden := read(t, filepath.Base(path), string(text)), strings.TrimSuffix(path, ".yaml")+".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
