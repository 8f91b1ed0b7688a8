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
	for _, threat := range threats(string(text)) {
		named := testName.FindAllString(threat, -1)
		if len(named) == 0 {
			t.Errorf("no test covers this threat: %s", threat)
		}
		for _, name := range named {
			if !tests[name] {
				t.Errorf("there is no test %s, which covers: %.80s…", name, threat)
			}
		}
	}
}

// TestReliabilityNamesTests checks that every test which docs/reliability.md names exists, and that no promise is
// without one.
func TestReliabilityNamesTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := declared(t)
	promises := promise.Split(string(text), -1)[1:]
	if len(promises) != 13 {
		t.Errorf("there are %d promises, want 13", len(promises))
	}
	for _, each := range promises {
		named := testName.FindAllString(each, -1)
		if len(named) < 3 {
			t.Errorf("only %d tests hold this promise: %.80s…", len(named), each)
		}
		for _, name := range named {
			if !tests[name] {
				t.Errorf("there is no test %s, which holds: %.80s…", name, each)
			}
		}
	}
}

// promise begins a promise of docs/reliability.md.
var promise = regexp.MustCompile(`(?m)^\d+\. \*\*`)

// threats returns the threats of the document: the list items that begin with bold text, but for
// those that say who may do what.
func threats(text string) (items []string) {
	for section := range strings.SplitSeq(text, "\n## ") {
		if !strings.HasPrefix(section, "Who may do what") {
			items = append(items, strings.Split(section, "\n- **")[1:]...)
		}
	}
	return items
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
