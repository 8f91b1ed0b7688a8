package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
)

// npmPackage is the newest version of a package of npm.
type npmPackage struct {
	name, version string
	date          string // of the version, as 2026-09-23
	files         map[string]string
}

// download fetches the newest version of a package from the registry that npm is set up for, and
// checks it against the registry's hash.
func download(name string) (*npmPackage, error) {
	about, err := exec.Command("npm", "view", name, "--json", "version", "time", "dist").Output()
	if err != nil {
		return nil, fmt.Errorf("npm view %s: %w", name, err)
	}
	var registry struct {
		Version string
		Time    map[string]string
		Dist    struct{ Tarball, Integrity string }
	}
	if err := json.Unmarshal(about, &registry); err != nil {
		return nil, err
	}
	p := &npmPackage{name: name, version: registry.Version, files: map[string]string{}}
	p.date, _, _ = strings.Cut(registry.Time[p.version], "T")
	dist := registry.Dist
	packed, err := fetch(dist.Tarball)
	if err != nil {
		return nil, err
	}
	sum := sha512.Sum512(packed)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != dist.Integrity {
		return nil, fmt.Errorf("%s has the hash %s, and the registry says %s", dist.Tarball, got, dist.Integrity)
	}
	return p, p.unpack(packed)
}

func fetch(address string) ([]byte, error) {
	answer, err := http.Get(address)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", address, answer.Status)
	}
	return io.ReadAll(io.LimitReader(answer.Body, 64<<20))
}

// unpack reads the files of a tarball.
func (p *npmPackage) unpack(packed []byte) error {
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	for files := tar.NewReader(plain); ; {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := io.ReadAll(io.LimitReader(files, 64<<20))
		if err != nil {
			return err
		}
		p.files[file.Name] = string(text)
	}
}
