package strictyaml

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// content returns a value as package json would decode it: mappings, lists, texts and nil.
func content(p Value) any {
	if text, ok := p.Scalar(); ok {
		return text
	}
	if p.Null() {
		return nil
	}
	if p.kind() == list {
		all := []any{}
		p.Items(func(item Value) { all = append(all, content(item)) })
		return all
	}
	all := map[string]any{}
	p.Entries(func(name string, _, value Value) { all[name] = content(value) })
	return all
}

// read returns the content of a text as JSON, or its faults.
func read(text string) string {
	d := Parse("f.yaml", text, 1<<20, 100_000)
	read := content(d.Root())
	if faults := d.Faults(); len(faults) > 0 {
		lines := make([]string, len(faults))
		for i, f := range faults {
			lines[i] = strings.TrimPrefix(f.String(), "f.yaml:")
		}
		return strings.Join(lines, "\n")
	}
	shown, err := json.Marshal(read)
	if err != nil {
		return err.Error()
	}
	return string(shown)
}

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		"":                         `null`,
		"\ufeff# nothing\n---\n":   `null`,
		"--- ~":                    `null`,
		"text":                     `"text"`,
		"a:\r\n  b: c\r\n":         `{"a":{"b":"c"}}`,
		"a: # none\n\n# b\nc: d":   `{"a":null,"c":"d"}`,
		"a: null\nb: ~\nc: 'null'": `{"a":null,"b":null,"c":"null"}`,
		"- a: b\n  c: d\n-\n- - e\n  - f\n-\n  g: h\n": `[{"a":"b","c":"d"},null,["e","f"],{"g":"h"}]`,
		"{a: [b, {c: d}, ], 'e': {}, \"f\":g}":         `{"a":["b",{"c":"d"}],"e":{},"f":"g"}`,
		"{a: http://b, c: 12:30, d: [1.5, 010, true]}": `{"a":"http://b","c":"12:30","d":["1.5","010","true"]}`,
		"? a\n: b": `{"a":"b"}`,

		// Texts of several lines: without the end of the last one.
		"a: |\n  b\n  c\n":    `{"a":"b\nc"}`,
		"a: >-\n  b\n  c\n":   `{"a":"b c"}`,
		"a: \"b\n  c\"\nd: e": `{"a":"b c","d":"e"}`,

		// Aliases and merges.
		"a: &x {b: c}\nd: *x":                                      `{"a":{"b":"c"},"d":{"b":"c"}}`,
		"a: &x b\n*x : c":                                          `{"a":"b","b":"c"}`,
		"a: &x {b: c, d: e}\nf: {<<: *x, b: g}":                    `{"a":{"b":"c","d":"e"},"f":{"b":"g","d":"e"}}`,
		"a: &x {b: 1}\nc: &y {b: 2, d: 3}\ne: {<<: [*x, *y]}":      `{"a":{"b":"1"},"c":{"b":"2","d":"3"},"e":{"b":"1","d":"3"}}`,
		"a: &x {b: 1}\nc: &y {<<: *x, d: 2}\ne:\n  <<: *y\n  f: 3": `{"a":{"b":"1"},"c":{"b":"1","d":"2"},"e":{"b":"1","d":"2","f":"3"}}`,
	} {
		if diff := cmp.Diff(want, read(text)); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}

func TestCount(t *testing.T) {
	for text, want := range map[string]bool{
		"1000": true, "0": true, "1_000": true, "'1000'": true, "-1": false, "+1": false, "01": false, "1001": false, "1.0": false, "_1": false, "~": false,
	} {
		d := Parse("f.yaml", text, 100, 100)
		n := -1
		Count(&n, 0, 1000)(d.Root())
		if ok := len(d.Faults()) == 0; ok != want || ok != (n >= 0) {
			t.Errorf("%s: %d, %v", text, n, d.Faults())
		}
	}
}

// Faults that the test files of the gateway's configuration do not have.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"a: b: c":                  "1:5: it cannot be read as YAML: mapping values are not allowed in this context",
		"- a\nb: c":                "2:1: it cannot be read as YAML: did not find expected '-' indicator, while parsing a block collection that begins at 1:1",
		"a: 'b":                    "1:6: it cannot be read as YAML: found unexpected end of stream, while scanning a quoted scalar that begins at 1:4",
		"a: b\n\x00c: d":           "1:1: it cannot be read as YAML: control characters are not allowed (value: 0)",
		"a: @b":                    "1:4: it cannot be read as YAML: found character that cannot start any token: a text that begins with it needs quotes",
		"a: *b":                    "1:4: it cannot be read as YAML: unknown anchor 'b' referenced: a text that begins with * or & needs quotes",
		"a: !b c":                  "1:4: a tag: it must be left out; a text with ! needs quotes",
		"a: &x [b, *x]":            "1:11: an alias of what it is in: it must be written out",
		"a: &x {<<: *x}":           "1:12: <<: it must have the alias of a mapping, or a list of such",
		"a: {<<: b}":               "1:9: <<: it must have the alias of a mapping, or a list of such",
		"null: a":                  "1:1: it has no value: it must be a name",
		"a: b\n'a': c":             `2:1: duplicate key "a": it must occur once`,
		"a: b\n---\nc: d":          "2:1: a second document: there must be one",
		"a: b" + "\xff":            "1:1: the line is not UTF-8, which it must be",
		strings.Repeat("#", 1<<21): "1:1: the file is larger than 1048576 bytes, which is the most that is allowed",
	} {
		if diff := cmp.Diff(want, read(text)); diff != "" {
			t.Errorf("%.80q: -want +got:\n%s", text, diff)
		}
	}
}

// Aliases and merges that double with each line are refused in no time, whether they make the document large or not.
func TestBombs(t *testing.T) {
	for name, line := range map[string]string{"lists": "a%d: &x%d [*x%d, *x%d]\n", "merges": "a%d: &x%d {<<: [*x%d, *x%d]}\n"} {
		text := "a: &x0 {b: c}\n"
		for i := range 100 {
			text += fmt.Sprintf(line, i, i+1, i, i)
		}
		if got, want := read(text), "1:1: the file has more than 100000 keys and values, which is the most that is allowed"; got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Keys that are merged again and again count each time, although the document has them once.
func TestMergesOfTheSameKeys(t *testing.T) {
	text := "a: &x\n"
	for i := range 200 {
		text += fmt.Sprintf("  k%d: 1\n", i)
	}
	text += "b: {<<: [" + strings.Repeat("*x, ", 1000) + "]}\n"
	if got, want := read(text), "1:1: the file has more than 100000 keys and values, which is the most that is allowed"; got != want {
		t.Errorf("%.200s", got)
	}
}

// A fault has the path of the value, its line and its column.
func TestPlaces(t *testing.T) {
	const text = "a:\n  b c: [x, {d: é, e: y}]\n  f:\n    - g: 1\n      h: {}\n    -\n"
	d := Parse("f.yaml", text, 1<<20, 100_000)
	root := d.Root()
	var items []Value
	root.At("a", "f").Items(func(p Value) { items = append(items, p) })
	var listed []Value
	root.At("a", "b c").Items(func(p Value) { listed = append(listed, p) })
	for want, p := range map[string]Value{
		"f.yaml:1:1: here":                  root,
		"f.yaml:1:1: a: here":               root.At("a"),
		`f.yaml:2:3: a["b c"]: here`:        root.At("a", "b c"),
		`f.yaml:2:9: a["b c"][0]: here`:     listed[0],
		`f.yaml:2:12: a["b c"][1]: here`:    listed[1],
		`f.yaml:2:22: a["b c"][1].e: here`:  listed[1].At("e"),
		"f.yaml:4:10: a.f[0].g: here":       items[0].At("g"),
		"f.yaml:5:7: a.f[0].h: here":        items[0].At("h"),
		"f.yaml:6:6: a.f[1]: here":          items[1],
		`f.yaml:1:1: a.none["m n"].f: here`: root.At("a", "none", "m n", "f"),
		"--flag: here":                      d.Flag("--flag", "value"),
	} {
		d.faults = nil
		p.Fault("here")
		if got := d.Faults()[0].String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if p.node > 0 && (!p.Faulty() || root.At("a", "f").Faulty() != strings.Contains(want, "a.f")) {
			t.Errorf("%s: it is not known what is faulty", want)
		}
	}
}

// JSON is YAML: every value is read as package json wrote it.
func TestJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := jsonValue(t, 4)
		text, err := json.Marshal(want)
		if rapid.Bool().Draw(t, "in lines") {
			text, err = json.MarshalIndent(want, "", rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "indent"))
		}
		if err != nil {
			t.Fatal(err)
		}
		d := Parse("f.yaml", string(text), 1<<20, 100_000)
		if diff := cmp.Diff(want, content(d.Root())); diff != "" || len(d.Faults()) > 0 {
			t.Fatalf("%s: %v, -want +got:\n%s", text, d.Faults(), diff)
		}
	})
}

// jsonValue returns a value of some depth, whose names are not empty and have no control characters.
func jsonValue(t *rapid.T, depth int) any {
	text := rapid.StringMatching(`[ -~é模🤖]{0,8}`)
	switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
	case kind == 0:
		return nil
	case kind == 1 || depth == 0:
		return text.Draw(t, "text")
	case kind == 2:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "items"))
		for i := range list {
			list[i] = jsonValue(t, depth-1)
		}
		return list
	}
	all := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "entries") {
		all["x"+text.Draw(t, "name")] = jsonValue(t, depth-1)
	}
	return all
}

// Any text can be read, or has faults with a line and a column.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"a:\n  - b: 'c'\n    \"d\": [e, {f: g}]\n? h\n: |\n  i\n\nj: ~ # k\r\n", "--- {a: \"\\x41\\u00e9\"}", "a: &b [*c, !d e]", "%A\n---\n...\n", "{[?: ", "\"\\", "<<: a",
		"a: &x {b: 1}\nc: {<<: [*x, {d: *x}]}\n*x : *x", "a: &x [&y {<<: *x}, *y]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := Parse("f.yaml", text, 1<<20, 10_000)
		content(d.Root())
		if faults := d.Faults(); len(faults) == 0 {
			checkTree(t, d)
		} else if last := faults[len(faults)-1]; last.Line < 1 || last.Column < 1 || last.Problem == "" {
			t.Errorf("%q: %+v", text, last)
		}
	})
}

// checkTree checks that each list and mapping ends where another node begins, and within the ones
// around it.
func checkTree(t *testing.T, d *Document) {
	t.Helper()
	ends := []int{len(d.nodes)}
	for i, n := range d.nodes {
		for i == ends[len(ends)-1] {
			ends = ends[:len(ends)-1]
		}
		if behind := d.after(i); behind <= i || behind > ends[len(ends)-1] {
			t.Fatalf("%q: node %d of %v ends at %d", d.text, i, d.nodes, behind)
		}
		if n.kind >= list {
			ends = append(ends, d.after(i))
		}
		if i < 1000 { // which takes as long as there are nodes before it
			d.locate(i)
		}
	}
}
