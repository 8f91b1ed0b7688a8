package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// The program runs where the repository is.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A release has all that it should. Two builds of one commit have the same bytes, which the short version leaves out.
func TestRelease(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the program that is built here does not run here")
	}
	if testkit.Raced {
		t.Skip("make test runs it without the race detector, in which it takes minutes to compress")
	}
	files := released(t)
	if !testing.Short() {
		for name, data := range released(t) {
			if !bytes.Equal(files[name], data) {
				t.Errorf("%s is not the same when it is built again", name)
			}
		}
	}
	kinds := map[string][]byte{}
	for name, data := range files {
		_, kind, _ := strings.Cut(name, runtime.GOARCH)
		kinds[kind] = data
	}
	for _, kind := range []string{".tar.gz", ".deb", ".rpm", ".oci.tar", ".cdx.json"} {
		if len(kinds[kind]) == 0 {
			t.Errorf("there is no %s in %d files", kind, len(files))
		}
	}
	checkChecksums(t, files)
	t.Run("archive", func(t *testing.T) { checkArchive(t, kinds[".tar.gz"]) })
	t.Run("image", func(t *testing.T) { checkImage(t, kinds[".oci.tar"]) })
	t.Run("SBOM", func(t *testing.T) { checkSBOM(t, kinds[".cdx.json"]) })
	t.Run("deb", func(t *testing.T) { checkDeb(t, kinds[".deb"]) })
}

// released builds a release for this platform, and returns its files.
func released(t *testing.T) map[string][]byte {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "dist")
	if err := run([]string{"-out", folder, "-platforms", "linux/" + runtime.GOARCH}, io.Discard); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = data
	}
	return files
}

func checkChecksums(t *testing.T, files map[string][]byte) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(string(files["checksums.txt"])), "\n")
	if len(lines) != len(files)-1 {
		t.Errorf("%d checksums of %d files", len(lines), len(files)-1)
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		if sum != fmt.Sprintf("%x", sha256.Sum256(files[name])) {
			t.Errorf("the checksum of %s is wrong", name)
		}
	}
}

// readTar returns the files of a tar, and of folders their names.
func readTar(t *testing.T, r io.Reader) (files map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	files, headers = map[string][]byte{}, map[string]*tar.Header{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name], headers[header.Name] = data, header
	}
}

func unpack(t *testing.T, data []byte) io.Reader {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkArchive expects the program with its documents, and that it runs where there is nothing else.
func checkArchive(t *testing.T, data []byte) {
	files, _ := readTar(t, unpack(t, data))
	for _, name := range []string{"LICENSE", "README.md", "completions/ratelimit.bash", "completions/ratelimit.zsh", "man/ratelimit.1", "man/ratelimit-serve.1"} {
		if len(files[name]) == 0 {
			t.Errorf("there is no %s", name)
		}
	}
	if folder, err := os.Getwd(); err != nil || bytes.Contains(files["ratelimit"], []byte(folder)) {
		t.Errorf("the program contains %s, where it was built: %v", folder, err)
	}
	checkLinked(t, files["ratelimit"])
	runAlone(t, files["ratelimit"])
}

// runAlone runs the program in a folder that is its whole world.
func runAlone(t *testing.T, program []byte) {
	if os.Getuid() != 0 {
		t.Skip("chroot is for root")
	}
	world := t.TempDir()
	if err := os.WriteFile(filepath.Join(world, "ratelimit"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"version"}, {"check", "--example"}, {"prices", "gpt-4o"}} {
		c := exec.Command("/ratelimit", args...)
		c.Dir, c.Env = "/", []string{"HOME=/"}
		c.SysProcAttr = &syscall.SysProcAttr{Chroot: world}
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// checkSBOM expects all modules that the program links, and Go itself.
func checkSBOM(t *testing.T, data []byte) {
	var bom struct {
		BOMFormat  string
		Components []component
	}
	read(t, data, &bom)
	found := map[string]component{}
	for _, c := range bom.Components {
		found[c.Name] = c
	}
	if bom.BOMFormat != "CycloneDX" || found["stdlib"].Version == "" || len(found["modernc.org/sqlite"].Hashes) != 1 {
		t.Errorf("%s with %d components: %+v", bom.BOMFormat, len(found), found["modernc.org/sqlite"])
	}
}

// checkDeb lists the package with dpkg, where that is installed.
func checkDeb(t *testing.T, data []byte) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg is not here")
	}
	file := filepath.Join(t.TempDir(), "ratelimit.deb")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("dpkg-deb", "--contents", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"./usr/bin/ratelimit", "./usr/lib/systemd/system/ratelimit.service", "./etc/ratelimit/gateway.yaml", "/man1/ratelimit.1"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("there is no %s in\n%s", want, out)
		}
	}
}

// A folder that has something in it, and platforms that are none, are refused.
func TestBadInput(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-out", full}, "is not empty"},
		{[]string{"-out", filepath.Join(t.TempDir(), "d"), "-platforms", "linux"}, "want os/arch"},
	} {
		if err := run(tt.args, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.args, err, tt.want)
		}
	}
}

func read(t *testing.T, data []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatal(err)
	}
}
