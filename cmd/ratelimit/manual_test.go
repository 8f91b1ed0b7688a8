package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every command has a man page, with its flags, which man's formatter takes without a complaint.
func TestMan(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "man1")
	if got := run(t, "man", directory); got.code != exitFine || !strings.Contains(got.stdout, "pages are in") {
		t.Fatalf("%+v", got)
	}
	for c := range commandsBelow(newRoot()) {
		page, err := os.ReadFile(filepath.Join(directory, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, f := range flagsOf(c) {
			if !strings.Contains(string(page), `\-\-`+strings.ReplaceAll(f.Name, "-", `\-`)) {
				t.Errorf("the page of %s has no --%s", c.CommandPath(), f.Name)
			}
		}
		if groff, err := exec.LookPath("groff"); err == nil {
			format := exec.Command(groff, "-man", "-Kutf8", "-Tutf8", "-ww", "-Wbreak")
			format.Stdin = strings.NewReader(string(page))
			var faults strings.Builder
			format.Stderr = &faults
			if err := format.Run(); err != nil || faults.Len() > 0 {
				t.Errorf("%s: %v\n%s", c.CommandPath(), err, faults.String())
			}
		}
	}
	if got := run(t, "man"); !strings.HasPrefix(got.stdout, `.TH "RATELIMIT" 1`) || !strings.Contains(got.stdout, ".SH EXIT STATUS") {
		t.Errorf("%+v", got)
	}
}

func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		"a --flag":      `a \-\-flag`,
		"a\n.b\n'c":     "a\n\\&.b\n\\&'c",
		"first\n\nnext": "first\n.PP\nnext",
		`a\b`:           `a\eb`,
	} {
		if got := roff(text); got != want {
			t.Errorf("%q: %q; want %q", text, got, want)
		}
	}
}
