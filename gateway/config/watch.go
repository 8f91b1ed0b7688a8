package config

import (
	"context"
	"crypto/sha256"
	"os"
	"time"
)

// Watcher knows what a file held when it was made, or has held since.
type Watcher struct {
	path  string
	known [sha256.Size]byte
}

// NewWatcher returns a watcher of a file. Make it before the file is read, so that no
// change is lost between the two.
func NewWatcher(path string) *Watcher {
	known, _ := sum(path)
	return &Watcher{path, known}
}

// Run calls changed whenever what the file holds has become something else, until ctx
// ends. It looks at the file every so often, so it does not matter how the file is
// replaced: written over, renamed, or behind a symbolic link that is. A change counts
// when it is still there a look later, so that a file is not read while it is written;
// one that is missing has not changed.
func (w *Watcher) Run(ctx context.Context, every time.Duration, changed func()) {
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

// sum tells what a file holds, and whether it is there. A pipe is not: what is read of
// it is gone for others.
func sum(path string) ([sha256.Size]byte, bool) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return [sha256.Size]byte{}, false
	}
	text, err := readFile(path)
	return sha256.Sum256(text), err == nil
}
