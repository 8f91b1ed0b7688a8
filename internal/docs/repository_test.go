package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// repository is what there is to name.
type repository struct {
	*code
	folders   map[string]string // of packages, by their names
	top       []string          // the folders in the root
	makefile  string
	help      map[string]string // by command
	scenarios string
	excepted  map[string]bool // exceptions that were needed
}

var (
	scenario = regexp.MustCompile(`[({]"([\w/]+)"`)
	alert    = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
)

func newRepository(t *testing.T) *repository {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	r := &repository{code: goCode(t), folders: map[string]string{}, help: map[string]string{}, excepted: map[string]bool{},
		makefile: read("Makefile"), scenarios: read("benchmarks/scenario.go")}
	for _, file := range files(t, ".go") {
		dir := filepath.ToSlash(filepath.Dir(file))
		if name := path.Base(dir); r.folders[name] == "" || len(dir) < len(r.folders[name]) {
			r.folders[name] = dir
		}
		if first, _, _ := strings.Cut(dir, "/"); first != "." && !slices.Contains(r.top, first) {
			r.top = append(r.top, first)
		}
	}
	r.top = append(r.top, "docs", "scripts")
	for _, found := range alert.FindAllStringSubmatch(read("telemetry/prometheus/alerts.yml"), -1) {
		r.names[found[1]] = true
	}
	const help = "cmd/ratelimit/testdata/help/"
	golden, err := filepath.Glob(filepath.Join(root, help, "*.txt"))
	if err != nil || len(golden) < 10 {
		t.Fatalf("%d commands have a help: %v", len(golden), err)
	}
	for _, file := range golden {
		name := filepath.Base(file)
		r.help[strings.ReplaceAll(strings.TrimSuffix(name, ".txt"), "-", " ")] = read(help + name)
	}
	return r
}

// folder returns the folder that a path or a package's name leads to, if it does to one.
func (r *repository) folder(name string) string {
	if dir := r.folders[name]; dir != "" {
		return dir
	}
	info, err := os.Stat(filepath.Join(root, name))
	switch {
	case strings.Contains(name, "*") && strings.Contains(name, "/"), err == nil && !info.IsDir():
		return path.Dir(name)
	case err == nil:
		return path.Clean(name)
	}
	return ""
}

// isScenario reports whether a scenario has the name, begins with it, or is divided by it.
func (r *repository) isScenario(name string) bool {
	return slices.ContainsFunc(scenario.FindAllStringSubmatch(r.scenarios, -1), func(found []string) bool {
		return strings.HasPrefix(found[1], name) || strings.HasPrefix(name, found[1]+"/")
	})
}

func (r *repository) exists(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		found, _ := filepath.Glob(filepath.Join(root, dir, name))
		return len(found) > 0
	})
}
