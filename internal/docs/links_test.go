package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#+ (.+)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// The files that documents link to exist, and so do the headings.
func TestLinks(t *testing.T) {
	all := documents(t)
	anchors := map[string]map[string]bool{}
	for _, d := range all {
		anchors[d.path] = anchorsOf(d)
	}
	for _, d := range all {
		for _, found := range link.FindAllStringSubmatch(strings.Join(prose(d.lines), "\n"), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := d.path
			if target != "" {
				file = path.Join(path.Dir(d.path), target)
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s links to %s, which does not exist", d.path, target)
			} else if anchor != "" && !anchors[file][anchor] {
				t.Errorf("%s links to #%s, which %s does not have", d.path, anchor, file)
			}
		}
	}
}

// anchorsOf returns the anchors of a document's headings, as GitHub makes them.
func anchorsOf(d document) map[string]bool {
	anchors := map[string]bool{}
	for _, line := range prose(d.lines) {
		if found := heading.FindStringSubmatch(line); found != nil {
			anchors[strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-")] = true
		}
	}
	return anchors
}

// prose returns the lines outside of code blocks; those inside are empty.
func prose(lines []string) []string {
	within := false
	kept := make([]string, len(lines))
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			within = !within
		} else if !within {
			kept[i] = line
		}
	}
	return kept
}
