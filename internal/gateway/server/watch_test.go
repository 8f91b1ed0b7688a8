package server

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// must fails the test if preparing a file has failed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Each step does something to the file, and the watcher looks two times after it.
func TestWatch(t *testing.T) {
	type step struct {
		name    string
		do      func(t *testing.T, path string)
		changes int
	}
	write := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte(text), 0o600)) }
	}
	rename := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			write(text)(t, path+".new")
			must(t, os.Rename(path+".new", path))
		}
	}
	remove := func(t *testing.T, path string) { must(t, os.Remove(path)) }
	steps := []step{
		{"nothing", func(*testing.T, string) {}, 0},
		{"written over", write("b"), 1},
		{"nothing", func(*testing.T, string) {}, 0},
		{"written over with the same", write("b"), 0},
		{"the same length", write("c"), 1},
		{"replaced", rename("d"), 1},
		{"replaced by the same", rename("d"), 0},
		{"removed", remove, 0},
		{"there again", write("d"), 0},
		{"removed again", remove, 0},
		{"there again, with something else", write("e"), 1},
		{"empty", write(""), 1},
	}
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	write("a")(t, path)
	w := newWatcher(path, nil)
	for i, s := range steps {
		s.do(t, path)
		if got := reported(w); got != s.changes {
			t.Errorf("step %d, %s: %d changes, want %d", i, s.name, got, s.changes)
		}
	}
}

// reported returns how many changes a watcher reports in two looks.
func reported(w *watcher) (n int) {
	for range 2 {
		if w.changed() {
			n++
		}
	}
	return n
}

// A change of an included file is one of the configuration, and so are files that come and go in an included directory.
func TestWatchIncluded(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.Mkdir(path("teams"), 0o700))
	write := func(name, text string) func() {
		return func() { must(t, os.WriteFile(path(name), []byte(text), 0o600)) }
	}
	write("gateway.yaml", "include: teams")()
	w := newWatcher(path("gateway.yaml"), config.Includes)
	for i, s := range []struct {
		name    string
		do      func()
		changes int
	}{
		{"a file comes", write("teams/a.yaml", "a"), 1},
		{"it changes", write("teams/a.yaml", "b"), 1},
		{"it is written over with the same", write("teams/a.yaml", "b"), 0},
		{"it has another name", func() { must(t, os.Rename(path("teams/a.yaml"), path("teams/b.yaml"))) }, 1},
		{"it goes", func() { must(t, os.Remove(path("teams/b.yaml"))) }, 1},
		{"another is included that is not there", write("gateway.yaml", "include: [teams, c.yaml]"), 1},
		{"it comes", write("c.yaml", "c"), 1},
		{"the configuration is no YAML", write("gateway.yaml", "include: ["), 1},
		{"it is one again", write("gateway.yaml", "include: c.yaml"), 1},
		{"a file changes that is not included any more", write("teams/a.yaml", "c"), 0},
		{"the included one changes", write("c.yaml", "d"), 1},
	} {
		s.do()
		if got := reported(w); got != s.changes {
			t.Errorf("step %d, %s: %d changes, want %d", i, s.name, got, s.changes)
		}
	}
}

// Kubernetes mounts a folder whose files are links into ..data, which is itself a link
// that is replaced.
func TestWatchBehindLinks(t *testing.T) {
	dir := t.TempDir()
	mount := func(version, text string) {
		must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, version, "gateway.yaml"), []byte(text), 0o600))
		must(t, os.Symlink(version, filepath.Join(dir, "..new")))
		must(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
	}
	mount("..1", "a")
	path := filepath.Join(dir, "gateway.yaml")
	must(t, os.Symlink(filepath.Join("..data", "gateway.yaml"), path))
	w := newWatcher(path, nil)
	mount("..2", "b")
	if n := reported(w); n != 1 {
		t.Errorf("%d changes, want 1", n)
	}
}

// A file is not loaded while it is half written.
func TestWatchWaitsForTheWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	must(t, os.WriteFile(path, []byte("keys: required"), 0o600))
	w := newWatcher(path, nil)
	for _, text := range []string{"", "key", "keys: requ"} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if w.changed() {
			t.Errorf("a change while %q is written", text)
		}
	}
	must(t, os.WriteFile(path, []byte("keys: required"), 0o600))
	if n := reported(w); n != 0 {
		t.Errorf("%d changes, though it is what it was", n)
	}
}

// A pipe is not read: the reader would take its content away from others, or wait for ever.
func TestWatchOfAPipe(t *testing.T) {
	read, write, err := os.Pipe()
	must(t, err)
	defer read.Close()
	_, err = write.WriteString("keys: required")
	must(t, err)
	must(t, write.Close())
	newWatcher(fmt.Sprintf("/dev/fd/%d", read.Fd()), nil)
	if text, err := io.ReadAll(read); err != nil || string(text) != "keys: required" {
		t.Errorf("%q is left, %v", text, err)
	}
}
