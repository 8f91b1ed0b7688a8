package server

import (
	"crypto/sha256"
	"os"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// watcher finds out whether a file has changed, or a file that it includes. It reads the files, so it does not matter how
// they are replaced: written over, renamed, or by another target of a symbolic link.
type watcher struct {
	path        string
	known, last digest // the digests of the content that is in use, and of the last reading

	includes func(path string) []string // returns the files and directories that the file includes; nil: it includes none
	listed   digest                     // of the file when its includes were listed
	included []string
}

type digest [sha256.Size]byte

// newWatcher returns a watcher of a file, and of the files that includes returns, if it is not nil. Make the watcher before
// you read the file, so that no change between the two is lost.
func newWatcher(path string, includes func(path string) []string) *watcher {
	w := &watcher{path: path, includes: includes}
	w.known, _ = w.sum()
	w.last = w.known
	return w
}

// changed reports whether the content of the file has changed since the watcher was made, or
// since changed last reported a change. A change counts when two readings in a row agree, so
// that nobody reads a file while it is being written. A file that is missing has not changed.
func (w *watcher) changed() bool {
	now, ok := w.sum()
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

// sum returns a digest of the content of the file and of all that it includes, and whether the file is there.
func (w *watcher) sum() (digest, bool) {
	main, ok := sum(w.path)
	if !ok || w.includes == nil {
		return main, ok
	}
	if main != w.listed {
		w.listed, w.included = main, w.includes(w.path)
	}
	all := main[:]
	for _, path := range config.IncludedFiles(w.included) {
		each, _ := sum(path) // a missing file is a fault of the configuration, which a reload reports
		all = append(append(all, path...), each[:]...)
	}
	return sha256.Sum256(all), true
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
