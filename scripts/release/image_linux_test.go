package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// image is what a registry knows of an image: its configuration, and its layer.
type image struct {
	Config struct {
		User        string
		Env         []string
		Healthcheck struct{ Test []string }
	}
	Rootfs struct {
		DiffIDs []string `json:"diff_ids"`
	}
}

// checkImage reads the image as a registry would, from its index down to the files of its layer, and runs it.
func checkImage(t *testing.T, data []byte) {
	files, _ := readTar(t, bytes.NewReader(data))
	blob := func(d descriptor) []byte {
		got := files[blobName(d)]
		if digest(got) != d.Digest || len(got) != d.Size {
			t.Fatalf("%s has %d bytes with %s, want %d", blobName(d), len(got), digest(got), d.Size)
		}
		return got
	}
	var index struct{ Manifests []descriptor }
	read(t, files["index.json"], &index)
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	read(t, blob(index.Manifests[0]), &manifest)
	var docker []struct {
		Config string
		Layers []string
	}
	read(t, files["manifest.json"], &docker)
	if len(docker) != 1 || docker[0].Config != blobName(manifest.Config) || !slices.Equal(docker[0].Layers, []string{blobName(manifest.Layers[0])}) {
		t.Errorf("Docker's index has %+v, and OCI's %+v", docker, manifest)
	}
	var i image
	read(t, blob(manifest.Config), &i)
	layer, err := io.ReadAll(unpack(t, blob(manifest.Layers[0])))
	if err != nil {
		t.Fatal(err)
	}
	if digest(layer) != i.Rootfs.DiffIDs[0] {
		t.Error("the layer is not the one that the configuration names")
	}
	contents, headers := readTar(t, bytes.NewReader(layer))
	if len(headers) != 2 || headers["ratelimit"].Mode != 0o755 || headers["state/"].Uid != user || i.Config.User != "65532:65532" {
		t.Fatalf("the layer has %+v, and the user is %s", headers, i.Config.User)
	}
	i.run(t, contents["ratelimit"])
}

// run serves in a folder that has what the layer has, as the image's user, and asks the health check.
func (i *image) run(t *testing.T, program []byte) {
	if os.Getuid() != 0 {
		t.Skip("chroot is for root")
	}
	world := t.TempDir()
	state := filepath.Join(world, "state")
	for _, err := range []error{
		os.WriteFile(filepath.Join(world, "ratelimit"), program, 0o755), os.Mkdir(state, 0o700), os.Chown(state, user, user), os.Chmod(world, 0o555),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) *exec.Cmd {
		c := exec.Command(args[0], args[1:]...)
		c.Dir, c.Env = "/", i.Config.Env
		c.SysProcAttr = &syscall.SysProcAttr{Chroot: world, Credential: &syscall.Credential{Uid: user, Gid: user}}
		return c
	}
	serve := command("/ratelimit", "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--state", "/state/ratelimits.db")
	out, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { serve.Process.Kill() })                                         // if it has not ended
	health := slices.Concat(i.Config.Healthcheck.Test[1:], []string{servedAt(t, out)}) // the first is CMD
	go io.Copy(io.Discard, out)
	if out, err := command(health...).CombinedOutput(); err != nil {
		t.Errorf("%q: %v\n%s", health, err, out)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serve.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// servedAt reads the address at which a gateway that starts serves clients.
func servedAt(t *testing.T, out io.Reader) string {
	t.Helper()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "serves http://"); ok {
			return strings.Fields(address)[0]
		}
	}
	t.Fatalf("the gateway has ended without a word of where it serves: %v", lines.Err())
	return ""
}
