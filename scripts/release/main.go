// Command release builds everything that a release has, into a folder: static binaries for each
// platform in archives with completions and man pages, packages for Debian and Red Hat, images,
// lists of what the binaries contain, and checksums. The same commit gives the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// platforms are those that a release is for.
const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string, progress io.Writer) error {
	fs := flag.NewFlagSet("release", flag.ContinueOnError)
	out := fs.String("out", "dist", "the `folder` to write to; it must be empty or missing")
	only := fs.String("platforms", platforms, "build for these `platforms`, as os/arch,os/arch")
	if err := fs.Parse(args); err != nil {
		return err
	}
	r, err := newRelease(*out)
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	fmt.Fprintf(progress, "ratelimit %s of %s\n", r.version, r.time.Format("2006-01-02"))
	for platform := range strings.SplitSeq(*only, ",") {
		goos, goarch, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("-platforms: %q: want os/arch, such as linux/amd64", platform)
		}
		if err := r.make(target{goos, goarch}); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		fmt.Fprintln(progress, "  "+platform)
	}
	if err := r.writeChecksums(); err != nil {
		return err
	}
	fmt.Fprintf(progress, "%s has %d files\n", *out, len(r.files))
	return nil
}

// make builds everything for a platform.
func (r *release) make(t target) error {
	b, err := r.build(t)
	if err != nil {
		return err
	}
	if err := r.writeArchive(b); err != nil {
		return err
	}
	if err := r.writeSBOM(b); err != nil {
		return err
	}
	if t.os != "linux" {
		return nil
	}
	return errors.Join(r.writeImage(b), r.writePackage(b, "deb"), r.writePackage(b, "rpm"))
}

// create makes a file of the release.
func (r *release) create(name string) (*os.File, error) {
	r.files = append(r.files, name)
	return os.Create(filepath.Join(r.out, name))
}
