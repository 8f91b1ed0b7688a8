package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// user is the one that the image runs as: nobody of the system.
const user = 65532

// descriptor says where a part of an image is, and what it is.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// writeImage writes an OCI image from scratch: the program, and a folder for its state. No daemon is
// needed; docker load, podman load and skopeo take the file. It also has the index of docker save, manifest.json, for
// versions of Docker that do not know OCI, and for podman, which heeds a health check in Docker's images alone.
func (r *release) writeImage(b binary) error {
	program, err := os.ReadFile(b.path)
	if err != nil {
		return err
	}
	image := &layout{created: r.time}
	config, layer, err := image.addLayer(r, b, []file{{"ratelimit", program, 0o755}, {"state/", nil, 0o700}})
	if err != nil {
		return err
	}
	manifest := image.addJSON("application/vnd.oci.image.manifest.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": config, "layers": []descriptor{layer},
	})
	manifest.Platform = &platform{b.arch, "linux"}
	manifest.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "ratelimit:" + r.version,
	}
	index, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []descriptor{manifest},
	})
	if err != nil {
		return err
	}
	docker, err := json.Marshal([]any{map[string]any{
		"Config": blobName(config), "RepoTags": []string{"ratelimit:" + r.version}, "Layers": []string{blobName(layer)},
	}})
	if err != nil {
		return err
	}
	files := append([]file{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644}, {"index.json", index, 0o644}, {"manifest.json", docker, 0o644},
	}, image.blobs...)
	out, err := r.create(r.name(b.target, ".oci.tar"))
	if err != nil {
		return err
	}
	return errors.Join(writeTar(out, files, r.time), out.Close())
}

// layout is the parts of an image, by their digests.
type layout struct {
	created time.Time
	blobs   []file
}

// addLayer adds a layer of files, and the configuration of an image that has it alone.
func (l *layout) addLayer(r *release, b binary, files []file) (config, layer descriptor, err error) {
	var whole, packed bytes.Buffer
	if err := writeTar(&whole, files, l.created); err != nil {
		return config, layer, err
	}
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(whole.Bytes()); err != nil {
		return config, layer, err
	}
	if err := z.Close(); err != nil {
		return config, layer, err
	}
	layer = l.add("application/vnd.oci.image.layer.v1.tar+gzip", packed.Bytes())
	config = l.addJSON("application/vnd.oci.image.config.v1+json", map[string]any{
		"created": l.created, "architecture": b.arch, "os": "linux",
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{digest(whole.Bytes())}},
		"history": []any{map[string]any{"created": l.created, "comment": "ratelimit " + r.version}},
		"config": map[string]any{
			"User": fmt.Sprintf("%d:%d", user, user), "Env": []string{"HOME=/state"}, "Entrypoint": []string{"/ratelimit"},
			"Cmd":          []string{"serve", "--listen", "0.0.0.0:8080", "--state", "/state/ratelimits.db"},
			"ExposedPorts": map[string]any{"8080/tcp": struct{}{}}, "Volumes": map[string]any{"/state": struct{}{}}, "WorkingDir": "/",
			"Healthcheck": map[string]any{ // Docker's own field
				"Test": []string{"CMD", "/ratelimit", "health"}, "Interval": 10 * time.Second, "Timeout": 3 * time.Second,
			},
			"Labels": map[string]string{
				"org.opencontainers.image.title": "ratelimit", "org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "MIT",
			},
		},
	})
	return config, layer, nil
}

func (l *layout) addJSON(kind string, value any) descriptor {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // the values are ours
	}
	return l.add(kind, data)
}

func (l *layout) add(kind string, data []byte) descriptor {
	d := descriptor{MediaType: kind, Digest: digest(data), Size: len(data)}
	l.blobs = append(l.blobs, file{blobName(d), data, 0o644})
	return d
}

// blobName returns the name of the file that has a part of an image.
func blobName(d descriptor) string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }
