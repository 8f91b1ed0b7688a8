package server

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
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
	w := newWatcher(path)
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
	w := newWatcher(path)
	mount("..2", "b")
	if n := reported(w); n != 1 {
		t.Errorf("%d changes, want 1", n)
	}
}

// A file is not loaded while it is half written.
func TestWatchWaitsForTheWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	must(t, os.WriteFile(path, []byte("keys: required"), 0o600))
	w := newWatcher(path)
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
	newWatcher(fmt.Sprintf("/dev/fd/%d", read.Fd()))
	if text, err := io.ReadAll(read); err != nil || string(text) != "keys: required" {
		t.Errorf("%q is left, %v", text, err)
	}
}
