package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var makeRun = regexp.MustCompile(`\bmake ([a-z]+)`)

// The workflows run targets that exist, among them those that a developer runs.
func TestWorkflows(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]bool{}
	for _, file := range []string{"test.yaml", "release.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, ".github/workflows", file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "- run: ")
			for _, found := range makeRun.FindAllStringSubmatch(command, -1) {
				if ok && !strings.Contains(string(makefile), "\n"+found[1]+":") {
					t.Errorf("%s runs make %s, which does not exist", file, found[1])
				}
				ran[found[1]] = true
			}
		}
	}
	for _, target := range []string{"test", "release", "apidiff"} {
		if !ran[target] {
			t.Errorf("no workflow runs make %s", target)
		}
	}
}
