package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release is what is built: a version of the source, into a folder.
type release struct {
	out     string
	version string    // that of the tag, without its v
	time    time.Time // that of the commit, which is the time of all files
	work    string    // for what is not released itself
	files   []string
	extras  []file // completions and man pages, once they were made
}

// target is a platform.
type target struct{ os, arch string }

// binary is the program for a platform.
type binary struct {
	target
	path string
}

// file is a file in an archive.
type file struct {
	name string
	data []byte
	mode int64
}

func newRelease(out string) (*release, error) {
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty: remove it first", out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	version, err := git("describe", "--tags", "--always", "--dirty", "--match", "v*")
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(version, "v") { // there is no tag yet
		version = "v0.0.0-" + version
	}
	seconds, err := git("log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, err
	}
	return &release{out: out, version: strings.TrimPrefix(version, "v"), time: time.Unix(unix, 0).UTC(), work: work}, nil
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// name returns the name of a file of the release, such as ratelimit_1.2.3_linux_amd64.tar.gz.
func (r *release) name(t target, suffix string) string {
	return fmt.Sprintf("ratelimit_%s_%s_%s%s", r.version, t.os, t.arch, suffix)
}

// build compiles the program for a platform, once: static, without paths of this machine.
func (r *release) build(t target) (binary, error) {
	b := binary{t, filepath.Join(r.work, t.os+"-"+t.arch, "ratelimit")}
	if t.os == "windows" {
		b.path += ".exe"
	}
	if _, err := os.Stat(b.path); err == nil {
		return b, nil
	}
	return b, r.compile(t, b.path)
}

func (r *release) compile(t target, path string) error {
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid=", "-o", path, "./cmd/ratelimit")
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// documents returns the completions and man pages, which the program itself writes.
func (r *release) documents() ([]file, error) {
	if r.extras != nil {
		return r.extras, nil
	}
	own, err := r.build(target{os: hostOS, arch: hostArch})
	if err != nil {
		return nil, err
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		text, err := exec.Command(own.path, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("completion %s: %w", shell, err)
		}
		r.extras = append(r.extras, file{"completions/ratelimit." + shell, text, 0o644})
	}
	folder := filepath.Join(r.work, "man")
	if out, err := exec.Command(own.path, "man", folder).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("man: %w\n%s", err, out)
	}
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err != nil {
		return nil, err
	}
	slices.Sort(pages)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		r.extras = append(r.extras, file{"man/" + filepath.Base(page), bytes.TrimRight(text, "\n"), 0o644})
	}
	return r.extras, nil
}
