package main

import (
	"regexp"
	"strings"
)

const aboutConfiguration = `# Every field of the configuration

` + "`make docs`" + ` writes this page from the example that ` + "`ratelimit check --example`" + ` prints, of which a test
checks that it has every field, with its default. [configuration.md](../configuration.md) is the guide, with reasons and
examples. Durations are written 500ms, 30s or 1h30m; sizes in bytes, or 64KiB and 32MiB.
`

// field matches a line of the example: a field that is commented out or not, its value, and a remark.
var field = regexp.MustCompile(`^( *)(# )?( *)("[^"]+"|[\w./*-]+): *(.*?)(?: +# (.*))?$`)

// entry is a field of the file.
type entry struct {
	path    []string
	value   string
	example bool // the value is an example, and not the default
	remark  string
}

func configuration(root string) (string, error) {
	text, err := current(root, example)
	if err != nil {
		return "", err
	}
	out := new(strings.Builder)
	out.WriteString(aboutConfiguration)
	for _, e := range entries(text) {
		e.write(out)
	}
	return out.String(), nil
}

// entries returns the fields of the example, in its order.
func entries(example string) (all []entry) {
	_, example, _ = strings.Cut(example, "\n\n") // the first paragraph is about the file
	var path []string
	var depths []int
	remark := ""
	for line := range strings.Lines(example) {
		line = strings.TrimRight(line, "\n")
		if _, text, ok := strings.Cut(line, "##"); ok {
			remark += " " + text
			continue
		}
		found := field.FindStringSubmatch(line)
		if found == nil {
			remark = ""
			continue
		}
		depth := len(found[1]) + len(found[3])
		for len(depths) > 0 && depths[len(depths)-1] >= depth {
			depths, path = depths[:len(depths)-1], path[:len(path)-1]
		}
		path, depths = append(path[:len(path):len(path)], strings.Trim(found[4], `"`)), append(depths, depth)
		all = append(all, entry{path, found[5], found[2] != "", strings.TrimSpace(remark + " " + found[6])})
		remark = ""
	}
	return all
}

// write writes a section for a field of the file's first level, and an item for others.
func (e entry) write(out *strings.Builder) {
	name, text := "`"+strings.Join(e.path, ".")+"`", e.remark
	if len(e.path) == 1 {
		out.WriteString("\n## " + e.path[0] + "\n\n")
		if text != "" {
			out.WriteString(wrap(text, "") + "\n")
		}
	}
	if e.value == "" && len(e.path) == 1 {
		return
	}
	item := "- " + name
	if e.value != "" && !strings.HasPrefix(e.value, "#") {
		kind := ", the default is "
		if e.example {
			kind = ", for example "
		}
		item += kind + "`" + e.value + "`"
	}
	if len(e.path) > 1 && text != "" {
		item += ". " + upper(text)
	}
	out.WriteString(wrap(item, "  "))
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
