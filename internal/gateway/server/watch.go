package server

import (
	"crypto/sha256"
	"os"
)

// watcher finds out whether a file has changed. It reads the file, so it does not matter how
// the file is replaced: written over, renamed, or by another target of a symbolic link.
type watcher struct {
	path        string
	known, last digest // the digests of the content that is in use, and of the last reading
}

type digest [sha256.Size]byte

// newWatcher returns a watcher of a file. Make the watcher before you read the file, so that no
// change between the two is lost.
func newWatcher(path string) *watcher {
	known, _ := sum(path)
	return &watcher{path, known, known}
}

// changed reports whether the content of the file has changed since the watcher was made, or
// since changed last reported a change. A change counts when two readings in a row agree, so
// that nobody reads a file while it is being written. A file that is missing has not changed.
func (w *watcher) changed() bool {
	now, ok := sum(w.path)
	if !ok {
		return false
	}
	changed := now == w.last && now != w.known
	w.last = now
	if changed {
		w.known = now
	}
	return changed
}

// sum returns a digest of the content of a file, and whether there is a regular file. It does not
// read a pipe: nobody else could read again what it has read from there.
func sum(path string) (digest, bool) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return digest{}, false
	}
	text, err := os.ReadFile(path)
	return sha256.Sum256(text), err == nil
}
