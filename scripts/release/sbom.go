package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// component is a module in a binary, as CycloneDX describes it.
type component struct {
	Type    string `json:"type"`
	BOMRef  string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// writeSBOM writes what a binary contains, by its own word: the modules that were linked, and the
// Go that has built it.
func (r *release) writeSBOM(b binary) error {
	info, err := buildinfo.ReadFile(b.path)
	if err != nil {
		return err
	}
	own := newComponent("application", info.Main.Path, "v"+r.version, "")
	parts := []component{newComponent("library", "stdlib", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		parts = append(parts, newComponent("library", m.Path, m.Version, m.Sum))
	}
	out, err := r.create(r.name(b.target, ".cdx.json"))
	if err != nil {
		return err
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return errors.Join(e.Encode(map[string]any{
		"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":   map[string]any{"timestamp": r.time.Format(time.RFC3339), "component": own},
		"components": parts,
	}), out.Close())
}

// newComponent describes a module. sum is its hash of go.sum, a SHA-256 in base64.
func newComponent(kind, path, version, sum string) component {
	purl := "pkg:golang/" + path + "@" + version
	c := component{Type: kind, BOMRef: purl, Name: path, Version: version, PURL: purl}
	if bytes, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(bytes) == 32 {
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(bytes)}}
	}
	return c
}
