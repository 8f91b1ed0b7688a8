package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// writePackage writes a package for Debian (deb) or Red Hat (rpm) with nfpm, which is a tool of the
// module tools.
func (r *release) writePackage(b binary, kind string) error {
	documents, err := r.documents()
	if err != nil {
		return err
	}
	contents := []map[string]any{
		{"src": b.path, "dst": "/usr/bin/ratelimit", "file_info": map[string]any{"mode": 0o755, "mtime": r.time}},
		{"src": "deploy/systemd/ratelimit.service", "dst": "/usr/lib/systemd/system/ratelimit.service", "file_info": r.info()},
		{"src": "internal/gateway/config/example.yaml", "dst": "/etc/ratelimit/gateway.yaml", "type": "config|noreplace", "file_info": r.info()},
		{"src": "LICENSE", "dst": "/usr/share/doc/ratelimit/copyright", "file_info": r.info()},
	}
	for _, d := range documents {
		at := installed(d.name, kind)
		if at == "" {
			continue
		}
		if strings.HasSuffix(at, ".gz") {
			d = file{d.name + ".gz", compressed(d.data), d.mode}
		}
		path := filepath.Join(r.work, d.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, d.data, 0o644); err != nil {
			return err
		}
		contents = append(contents, map[string]any{"src": path, "dst": at, "file_info": r.info()})
	}
	recipe, err := json.Marshal(map[string]any{ // JSON is YAML
		"name": "ratelimit", "arch": b.arch, "platform": "linux", "version": "v" + r.version, "version_schema": "semver",
		"maintainer": "go-ratelimit maintainers <noreply@dappco.re>", "homepage": "https://dappco.re/go/core/go-ratelimit",
		"license": "MIT", "section": "net", "mtime": r.time, "contents": contents, "description": description,
		"scripts": map[string]any{
			"postinstall": "deploy/packages/postinstall.sh", "preremove": "deploy/packages/preremove.sh", "postremove": "deploy/packages/postremove.sh",
		},
		"rpm": map[string]any{"buildhost": "localhost"},
	})
	if err != nil {
		return err
	}
	file := filepath.Join(r.work, kind+".json")
	if err := os.WriteFile(file, recipe, 0o644); err != nil {
		return err
	}
	name := r.name(b.target, "."+kind)
	c := exec.Command("go", "tool", "-modfile=tools/go.mod", "nfpm", "package", "--config", file, "--packager", kind, "--target", filepath.Join(r.out, name))
	c.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("nfpm: %w\n%s", err, out)
	}
	r.files = append(r.files, name)
	return nil
}

func (r *release) info() map[string]any { return map[string]any{"mode": 0o644, "mtime": r.time} }

// description is a line for lists of packages, and then more.
const description = `gateway that keeps callers of LLM APIs inside their limits
It limits requests, tokens and dollars for each model, project, key and
user, exactly: calls beyond a limit wait their turn or are denied. SDKs of
any language use it by their base URL.`

// compressed returns data as gzip packs it, without a time.
func compressed(data []byte) []byte {
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // a level that there is
	z.Write(data)                                              // a buffer takes everything
	z.Close()
	return packed.Bytes()
}

// installed returns where a document is on a system of Debian (deb) or Red Hat (rpm); empty: nowhere.
func installed(name, kind string) string {
	switch shell := strings.TrimPrefix(name, "completions/ratelimit."); {
	case strings.HasPrefix(name, "man/"):
		return "/usr/share/man/man1/" + strings.TrimPrefix(name, "man/") + ".gz"
	case shell == "bash":
		return "/usr/share/bash-completion/completions/ratelimit"
	case shell == "zsh" && kind == "deb":
		return "/usr/share/zsh/vendor-completions/_ratelimit"
	case shell == "zsh":
		return "/usr/share/zsh/site-functions/_ratelimit"
	case shell == "fish":
		return "/usr/share/fish/vendor_completions.d/ratelimit.fish"
	}
	return ""
}
