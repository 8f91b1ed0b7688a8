package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// slice is a load cut to a few windows.
func slice(l load, windows int) *load {
	l.windows = windows
	l.clients = slices.Clone(l.clients)
	for i := range l.clients {
		all := l.clients[i].arrivals
		end := slices.IndexFunc(all, func(a arrival) bool { return a.at >= l.length() })
		if end >= 0 {
			l.clients[i].arrivals = all[:end]
		}
	}
	return &l
}

// No window holds more than the quota, and no call is admitted before it came, whoever decides.
func TestNobodyExceedsTheQuota(t *testing.T) {
	for _, l := range loads() {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := slice(l, 3)
				got, err := compete(l)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range names() {
					keepsTheQuota(t, name, got[name])
				}
			})
		})
	}
}

func keepsTheQuota(t *testing.T, name string, s *service) {
	t.Helper()
	used, first := 0, 0
	for _, c := range s.admitted {
		for ; s.admitted[first].admitted+window <= c.admitted; first++ {
			used -= s.admitted[first].cost
		}
		if used += c.cost; used > s.load.quota {
			t.Fatalf("%s: %d of %d in the minute before %v", name, used, s.load.quota, c.admitted)
		}
		if c.admitted < c.arrived {
			t.Fatalf("%s: %+v is admitted before it came", name, c)
		}
	}
	if got := s.utilisation(); got < 0.5 {
		t.Errorf("%s: %.0f%% of the quota were used", name, 100*got)
	}
}

func TestProgram(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	if status := Main(t, []string{"-run", "^(late|trace)", "-plots", dir, "-windows"}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	for _, want := range append(names(), "LATECOMER", "TRACE", "rank-27", "of due, 2nd min", "bound of VTC: 2 for", "SHARES OF EACH WINDOW") {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &stdout)
		}
	}
	for load, names := range map[string][]string{"latecomer": {"hog", "latecomer", "dashed"}, "trace": {"rank-1", "24 others"}} {
		svg, err := os.ReadFile(filepath.Join(dir, "fair-"+load+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		if err := xml.Unmarshal(svg, new(struct{})); err != nil {
			t.Errorf("%s: not XML: %v", load, err)
		}
		for _, want := range append(names, "ours", "VTC", "LiteLLM") {
			if !strings.Contains(string(svg), want) {
				t.Errorf("the plot of %s does not show %q", load, want)
			}
		}
	}
}

func TestMarkdown(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status := Main(t, []string{"-run", "^hog$", "-plots", "", "-markdown"}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	for _, want := range []string{"### hog\n", "|  | off share | difference | Jain | utilisation | search | chat | batch |\n|---|---:|", "| fixed split | 0.0 |"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &stdout)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, test := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"-h"}, 0, "-markdown"},
		{[]string{"-nonsense"}, 2, "flag provided but not defined: -nonsense"},
		{[]string{"-run", "("}, 2, "missing closing )"},
		{[]string{"-run", "nothing like it"}, 2, "matches no load"},
		{[]string{"hog"}, 2, `unexpected argument "hog"`},
		{[]string{"-run", "^hog$", "-plots", "main.go/plots"}, 1, "main.go"},
	} {
		var stdout, stderr bytes.Buffer
		if status := Main(t, test.args, &stdout, &stderr); status != test.status || !strings.Contains(stderr.String(), test.stderr) {
			t.Errorf("%q: status %d and %q, want %d and %q", test.args, status, &stderr, test.status, test.stderr)
		}
	}
}
