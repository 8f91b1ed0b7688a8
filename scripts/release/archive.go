package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

const hostOS, hostArch = runtime.GOOS, runtime.GOARCH

// writeArchive writes the program with its documents: a zip for Windows, a tar.gz for others.
func (r *release) writeArchive(b binary) error {
	files, err := r.contents(b)
	if err != nil {
		return err
	}
	if b.os == "windows" {
		out, err := r.create(r.name(b.target, ".zip"))
		if err != nil {
			return err
		}
		return errors.Join(writeZip(out, files, r.time), out.Close())
	}
	out, err := r.create(r.name(b.target, ".tar.gz"))
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(out)
	return errors.Join(writeTar(packed, files, r.time), packed.Close(), out.Close())
}

// contents returns what an archive has.
func (r *release) contents(b binary) ([]file, error) {
	program, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	files := []file{{filepath.Base(b.path), program, 0o755}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, text, 0o644})
	}
	documents, err := r.documents()
	return append(files, documents...), err
}

// writeTar writes files that belong to nobody in particular.
func writeTar(w io.Writer, files []file, at time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Size: int64(len(f.data)), Mode: f.mode, ModTime: at, Format: tar.FormatUSTAR}
		if f.data == nil {
			header.Typeflag = tar.TypeDir
			header.Uid, header.Gid = user, user
		}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	return t.Close()
}

func writeZip(w io.Writer, files []file, at time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(os.FileMode(f.mode))
		part, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := part.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}

// writeChecksums writes the SHA-256 of every file, as sha256sum does.
func (r *release) writeChecksums() error {
	names := slices.Sorted(slices.Values(r.files))
	out, err := r.create("checksums.txt")
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%x  %s\n", sha256.Sum256(data), name)
	}
	return errors.Join(out.Close(), os.RemoveAll(r.work))
}
