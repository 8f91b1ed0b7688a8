package docs

import (
	"path"
	"regexp"
	"strings"
)

// span is code in a document: what stands between backticks, or a line of a code block.
type span struct {
	text string
	line int
	dirs []string // where a file's name without a folder may be
	lang string   // of its code block
	code bool     // whether it is in a code block
}

var quoted = regexp.MustCompile("`([^`]+)`")

// spans returns the code in a document. The name of a file may stand without its folder in
// the root, in the folder of the document, and behind a path or a package that the same
// section, or the same row of a table, has named before.
func spans(d document, folder func(name string) string) (all []span) {
	here := []string{".", path.Dir(d.path)}
	section, lang, within := here, "", false
	for i, line := range d.lines {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence:
			within, lang = !within, fence
		case within:
			all = append(all, span{line, i + 1, here, lang, true})
		default:
			if strings.HasPrefix(line, "#") {
				section = here
			}
			dirs := section
			if strings.HasPrefix(line, "|") {
				dirs = here
			}
			for _, found := range quoted.FindAllStringSubmatch(line, -1) {
				all = append(all, span{found[1], i + 1, dirs, "", false})
				if dir := folder(found[1]); dir != "" {
					dirs = append(dirs[:len(dirs):len(dirs)], dir)
				}
			}
			if !strings.HasPrefix(line, "|") {
				section = dirs
			}
		}
	}
	return all
}
