package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pages are what the code says now, and the files that people write have every kind of limit.
func TestReferenceIsCurrent(t *testing.T) {
	for name := range blocks {
		want, err := current("../..", name)
		kept, _ := os.ReadFile(filepath.Join("../..", name))
		if err != nil || string(kept) != want {
			t.Errorf("%s lacks a kind of limit (%v): run make docs", name, err)
		}
	}
	for name, page := range pages {
		want, err := page("../..")
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(filepath.Join("../..", folder, name))
		if err != nil || string(kept) != want {
			t.Errorf("%s/%s is not what the code says (%v): run make docs", folder, name, err)
		}
	}
}

// Fields keep their paths, whether they are commented out or not.
func TestEntries(t *testing.T) {
	all := entries(`## about

## Where clients connect.
listen: 127.0.0.1:8080

admin:
  ## The token.
  # token: {env: NAME}
# projects:
#   search:
#     weight: 3          # heavy
#   "acme/*": {weight: 1}
last: 1
`)
	var got []string
	for _, e := range all {
		got = append(got, strings.Join(e.path, ".")+"="+e.value+"|"+e.remark)
	}
	want := []string{
		"listen=127.0.0.1:8080|Where clients connect.", "admin=|", "admin.token={env: NAME}|The token.", "projects=|", "projects.search=|",
		"projects.search.weight=3|heavy", "projects.acme/*={weight: 1}|", "last=1|",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWrap(t *testing.T) {
	for line := range strings.Lines(wrap(strings.Repeat("word ", 100), "  ")) {
		if len(line) > width+1 {
			t.Errorf("%d characters", len(line))
		}
	}
}
