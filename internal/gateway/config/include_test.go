package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// directory returns a directory with files.
func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Included projects are as if they stood in the file itself, in whichever order the files are read.
func TestInclude(t *testing.T) {
	dir := directory(t, map[string]string{
		"gateway.yaml":         "include: [teams, more.yml]\ndefaults: {max_wait: 7s}\nprojects:\n  acme: {max_wait: 9s}\n",
		"teams/a.yaml":         "projects:\n  acme/search: {requests_per_minute: 5}\n  zeta/x: {}\n",
		"teams/b.yml":          "projects: {other: {weight: 3}}\n",
		"teams/.hidden.yaml":   "not read",
		"teams/notes.txt":      "not read",
		"teams/deeper/c.yaml":  "not read",
		"teams/..data/old.yml": "not read",
		"more.yml":             "projects:\n  zeta: {max_wait: 1s}\n",
	})
	got, err := config.Load(filepath.Join(dir, "gateway.yaml"), config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	want := parsed(t, `
defaults: {max_wait: 7s}
projects: {acme: {max_wait: 9s}, acme/search: {requests_per_minute: 5}, zeta/x: {}, other: {weight: 3}, zeta: {max_wait: 1s}}
`)
	if diff := cmp.Diff(want.Projects, got.Projects); diff != "" {
		t.Errorf("-one file +included:\n%s", diff)
	}
	var files []string
	for _, path := range got.Included {
		files = append(files, strings.TrimPrefix(path, dir+"/"))
	}
	if diff := cmp.Diff([]string{"teams/a.yaml", "teams/b.yml", "more.yml"}, files); diff != "" {
		t.Errorf("-want +included:\n%s", diff)
	}
}

// A fault of an included file names that file, and a fault of include itself the line that includes.
func TestIncludeFaults(t *testing.T) {
	for name, c := range map[string]struct{ main, a, want string }{
		"a fault in the file":    {"include: a.yaml", "projects:\n  p: {wieght: 2}", `DIR/a.yaml:2:7: projects.p: unknown field "wieght" (did you mean weight?)`},
		"no YAML":                {"include: a.yaml", "projects: {", "DIR/a.yaml:2:1: it cannot be read as YAML"},
		"two in the same file":   {"include: a.yaml", "projects:\n  p: {}\n  p: {}", `DIR/a.yaml:3:3: projects: duplicate key "p"`},
		"two in two files":       {"include: a.yaml\nprojects:\n  p: {}", "projects:\n  p: {}", `DIR/a.yaml:2:3: projects: duplicate project "p", which is at DIR/gateway.yaml:3:3 already`},
		"something else":         {"include: a.yaml", "projects: {}\nlisten: :80", `DIR/a.yaml:2:1: "listen": an included file may have projects alone`},
		"it includes others":     {"include: a.yaml", "include: b.yaml", `DIR/a.yaml:1:1: "include": an included file may have projects alone`},
		"an empty file":          {"include: a.yaml", "# soon", "DIR/a.yaml:1:1: it is empty"},
		"a list":                 {"include: a.yaml", "[p]", "DIR/a.yaml:1:1: a list: it must be a mapping"},
		"shares of two files":    {"include: a.yaml\nprojects: {p: {min_share: 60%}}", "projects:\n  q: {min_share: 50%}", "DIR/a.yaml:2:18: projects.q.min_share: the minimum shares of projects add up to 110%"},
		"no such file":           {"\ninclude: [a.yaml, b.yaml]", "projects: {}", "DIR/gateway.yaml:2:19: include[1]: stat DIR/b.yaml: no such file or directory: it must be"},
		"the file twice":         {"include: [a.yaml, ./a.yaml]", "projects: {p: {}}", "DIR/gateway.yaml:1:19: include[1]: DIR/a.yaml is included twice"},
		"the file itself":        {"include: .", "projects: {p: {}}", "DIR/gateway.yaml:1:10: include: DIR/gateway.yaml is included twice, or includes itself"},
		"no regular file":        {"include: /dev/null", "", "DIR/gateway.yaml:1:10: include: /dev/null is not a regular file"},
		"a mapping":              {"include: {a: b}", "", "DIR/gateway.yaml:1:1: include: a mapping: it must be the path"},
		"a share of a template":  {"include: a.yaml", "projects:\n  a/*: {min_share: 5%}", "DIR/a.yaml:2:20: projects[\"a/*\"].min_share: 5%: it must be left out in a template"},
		"a file that is too big": {"include: a.yaml", strings.Repeat("#", 5<<20), "DIR/a.yaml:1:1: the file is larger than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t, map[string]string{"gateway.yaml": c.main, "a.yaml": c.a})
			cfg, err := config.Load(filepath.Join(dir, "gateway.yaml"), config.Overrides{})
			if want := "ratelimit: " + strings.ReplaceAll(c.want, "DIR", dir); cfg != nil || err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// A directory without files is probably a mistake, but files may come later.
func TestIncludeOfAnEmptyDirectory(t *testing.T) {
	dir := directory(t, map[string]string{"gateway.yaml": "include: teams", "teams/readme.txt": ""})
	cfg, err := config.Load(filepath.Join(dir, "gateway.yaml"), config.Overrides{})
	if err != nil || len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0], "has no .yaml file") {
		t.Errorf("%+v, %v", cfg, err)
	}
}
