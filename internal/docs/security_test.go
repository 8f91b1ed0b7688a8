package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityNamesTests checks that every test which docs/security.md names exists, and
// that no threat is without one.
func TestSecurityNamesTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := declared(t)
	for _, row := range threats(string(text)) {
		named := testName.FindAllString(row, -1)
		if len(named) == 0 {
			t.Errorf("no test covers this threat: %s", row)
		}
		for _, name := range named {
			if !tests[name] {
				t.Errorf("there is no test %s, which covers: %.80s…", name, row)
			}
		}
	}
}

// threats returns the rows of the tables that have a column of tests.
func threats(text string) (rows []string) {
	within := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "| threat |"):
			within = true
		case !strings.HasPrefix(line, "|"):
			within = false
		case within && !strings.HasPrefix(line, "|---"):
			rows = append(rows, line)
		}
	}
	return rows
}

var testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)

var declaration = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// declared returns the names of all tests of the repository.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, path := range files(t, "_test.go") {
		source, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range declaration.FindAllStringSubmatch(string(source), -1) {
			names[found[1]] = true
		}
	}
	return names
}
