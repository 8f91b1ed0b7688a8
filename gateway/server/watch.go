package server

import (
	"context"
	"crypto/sha256"
	"os"
	"time"
)

// watcher knows what a file held when the watcher was made, or at its last change.
type watcher struct {
	path  string
	known [sha256.Size]byte
}

// newWatcher returns a watcher of a file. Make the watcher before you read the file, so that no
// change between the two is lost.
func newWatcher(path string) *watcher {
	known, _ := sum(path)
	return &watcher{path, known}
}

// run calls changed whenever the content of the file has changed, until ctx ends. It reads the
// file at intervals, so it does not matter how the file is replaced: written over, renamed, or
// by another target of a symbolic link. A change counts when two readings in a row agree, so
// that nobody reads a file while it is being written. A file that is missing has not changed.
func (w *watcher) run(ctx context.Context, every time.Duration, changed func()) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	last := w.known
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, ok := sum(w.path)
		if !ok {
			continue
		}
		if now == last && now != w.known {
			w.known = now
			changed()
		}
		last = now
	}
}

// sum returns a hash of the content of a file, and whether there is a file. A pipe is none:
// what the watcher reads from it, nobody else could read.
func sum(path string) ([sha256.Size]byte, bool) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return [sha256.Size]byte{}, false
	}
	text, err := os.ReadFile(path)
	return sha256.Sum256(text), err == nil
}
