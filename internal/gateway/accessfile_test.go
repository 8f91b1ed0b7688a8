package gateway

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// Requests are logged to a file of their own, whatever the level of the log, and to no other place.
func TestRequestsInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "requests.jsonl")
	r := newRig(t, oneOfEach+"log: {level: \"off\", requests: "+path+"}\n", mockprovider.Config{})
	if a := r.post(t, chat, hello); a.status != 200 {
		t.Fatal(a)
	}
	r.settled(t)
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), `"outcome":"passed"`) {
		t.Errorf("%s %v", text, err)
	}
}

// A file that another program has moved away, deleted or emptied is gone on with, and no line is in two files.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "requests.jsonl")
	read := func(path string) string {
		text, _ := os.ReadFile(path)
		return string(text)
	}
	synctest.Test(t, func(t *testing.T) {
		f, err := openRotated(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		write := func(line string) {
			time.Sleep(time.Second)
			if _, err := f.Write([]byte(line + "\n")); err != nil {
				t.Error(err)
			}
		}
		write("one")
		os.Rename(path, path+".1")
		write("two")
		if read(path+".1") != "one\n" || read(path) != "two\n" {
			t.Errorf("after a move: %q %q", read(path+".1"), read(path))
		}
		os.Remove(path)
		write("three")
		if read(path) != "three\n" {
			t.Errorf("after a removal: %q", read(path))
		}
		os.Truncate(path, 0)
		write("four")
		if read(path) != "four\n" {
			t.Errorf("after it was emptied: %q", read(path))
		}
	})
	if _, err := openRotated(filepath.Join(dir, "missing", "x"), nil); err == nil || !strings.Contains(err.Error(), "log.requests") {
		t.Error(err)
	}
}
