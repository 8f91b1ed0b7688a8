package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

// These bound the files that a configuration includes, each of which is bounded as the configuration itself.
const (
	maxIncluded      = 1000
	maxIncludedBytes = 32 << 20
)

// include reads the files that the field include names, and returns their paths.
func (r *reader) include(at yamlValue) (files []string) {
	left := maxIncludedBytes
	for _, in := range includes(r.name, at) {
		found, err := filesAt(in.path)
		if err != nil {
			in.at.Fault("%v: it must be the path of a file, or of a directory with .yaml files", err)
			continue
		}
		if len(found) == 0 {
			in.at.Warn("the directory %s has no .yaml file", in.path)
		}
		for _, path := range found {
			text, err := readIncluded(path)
			left -= len(text)
			switch {
			case err != nil:
				in.at.Fault("%v", err)
			case slices.Contains(files, path) || sameFile(path, r.name):
				in.at.Fault("%s is included twice, or includes itself", path)
			case len(files) == maxIncluded || left < 0:
				in.at.Fault("%d files with %s in all may be included, and with %s it would be more", maxIncluded, sizeText(maxIncludedBytes), path)
				return files
			default:
				files = append(files, path)
				r.included = append(r.included, parseIncluded(path, text))
			}
		}
	}
	return files
}

// parseIncluded parses an included file, which has projects alone.
func parseIncluded(path string, text []byte) *strictyaml.Document {
	d := strictyaml.Parse(path, string(text), maxBytes, maxParts)
	if len(d.Faults()) == 0 && d.Blank() {
		d.Root().Fault("it is empty: an included file must have projects")
	}
	d.Root().Entries(func(name string, key, _ yamlValue) {
		if name != "projects" {
			key.Fault("%s: an included file may have projects alone; every other field belongs in the file that includes it", message.Quote(name))
		}
	})
	return d
}

// An included is the path of a file or a directory that a configuration includes.
type included struct {
	path string
	at   yamlValue
}

// includes returns what the field include names: a path, or a list of paths. They are relative to the directory of the
// configuration, whose file has the name.
func includes(name string, at yamlValue) (all []included) {
	add := func(at yamlValue) {
		text, ok := at.Text("the path of a file or of a directory")
		if !ok {
			return
		}
		path := home(at, text)
		if path != "" && !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(name), path)
		}
		if path != "" {
			all = append(all, included{path, at})
		}
	}
	if at.IsList() {
		at.Items(add)
	} else {
		add(at)
	}
	return all
}

// Includes returns the files and directories that the configuration at a path includes: none if it cannot be read.
func Includes(path string) (paths []string) {
	text, err := readFile(path)
	if err != nil {
		return nil
	}
	root := strictyaml.Parse(path, string(text), maxBytes, maxParts).Root()
	if root.Has("include") {
		for _, in := range includes(path, root.At("include")) {
			paths = append(paths, in.path)
		}
	}
	return paths
}

// IncludedFiles returns the files at paths, and in the directories at paths.
func IncludedFiles(paths []string) (files []string) {
	for _, path := range paths {
		found, err := filesAt(path)
		if err != nil {
			found = []string{path}
		}
		files = append(files, found...)
	}
	return files
}

// filesAt returns the path of a file, or the paths of the .yaml and .yml files in a directory, by their names. Files whose
// names begin with a dot do not count.
func filesAt(path string) ([]string, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	var files []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, err
}

// readIncluded reads a regular file. Nothing else could be read again.
func readIncluded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file, which it must be", path)
	}
	if err != nil {
		return nil, err
	}
	return readFile(path)
}

// sameFile reports whether two paths lead to one file.
func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	second, err2 := os.Stat(b)
	return cmp.Or(err, err2) == nil && os.SameFile(first, second)
}
