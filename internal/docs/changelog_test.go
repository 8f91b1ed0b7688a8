package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// version is the heading of a version, as keepachangelog.com wants it.
var version = regexp.MustCompile(`^\[(Unreleased|\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}$)`)

// The changelog has versions, and in each of them the six kinds of changes that people know, once each.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	versions := strings.Split(string(text), "\n## ")
	if len(versions) < 2 || !strings.HasPrefix(versions[1], "[Unreleased]\n") {
		t.Fatal("the first section is not [Unreleased]")
	}
	for _, section := range versions[1:] {
		title, changes, _ := strings.Cut(section, "\n")
		if !version.MatchString(title) {
			t.Errorf("%q: want [1.2.3] - 2026-11-30", title)
		}
		var seen []string
		for _, kind := range strings.Split(changes, "\n### ")[1:] {
			name, _, _ := strings.Cut(kind, "\n")
			if !slices.Contains([]string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}, name) || slices.Contains(seen, name) {
				t.Errorf("%s has a section %q, which is unknown or there twice", title, name)
			}
			seen = append(seen, name)
		}
	}
}
