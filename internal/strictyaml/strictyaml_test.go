package strictyaml

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var (
	byHand    = Form{MaxBytes: 1 << 20}
	generated = Form{MaxBytes: 1 << 20, Generated: true}
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
func read(text string, form Form) string {
	d := Parse("f.yaml", text, form)
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

// These texts are read the same in both forms of files.
func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		"":                         `null`,
		"\ufeff# nothing\n---\n":   `null`,
		"--- ~":                    `null`,
		"--- {a: b}":               `{"a":"b"}`,
		"text":                     `"text"`,
		"a: b":                     `{"a":"b"}`,
		"a:\r\n  b: c\r\n":         `{"a":{"b":"c"}}`,
		"  a: b\n  c: d\n":         `{"a":"b","c":"d"}`,
		"a:\n  b\nc:\n":            `{"a":"b","c":null}`,
		"a: # none\n\n# b\nc: d":   `{"a":null,"c":"d"}`,
		"a: null\nb: ~\nc: 'null'": `{"a":null,"b":null,"c":"null"}`,
		"a:\n- b\n- c\nd:\n  - e":  `{"a":["b","c"],"d":["e"]}`,
		"- a: b\n  c: d\n-\n- - e\n  - f\n-\n  g: h\n": `[{"a":"b","c":"d"},null,["e","f"],{"g":"h"}]`,
		"{a: [b, {c: d}, ], 'e': {}, \"f\":g}":         `{"a":["b",{"c":"d"}],"e":{},"f":"g"}`,
		"[a b, c:d, http://e]":                         `["a b","c:d","http://e"]`,
		"{a: http://b, c: 12:30}":                      `{"a":"http://b","c":"12:30"}`,

		// Texts without quotes.
		"a b: c d":                 `{"a b":"c d"}`,
		"a:b: c:d":                 `{"a:b":"c:d"}`,
		"it's: say \"hi\" # to me": `{"it's":"say \"hi\""}`,
		"a#b: c#d":                 `{"a#b":"c#d"}`,
		"-a: -b":                   `{"-a":"-b"}`,
		"?a: ?":                    `{"?a":"?"}`,
		":a: :b":                   `{":a":":b"}`,
		",a: }b]":                  `{",a":"}b]"}`,
		"a[b: c{d":                 `{"a[b":"c{d"}`,
		"a :   b  ":                `{"a":"b"}`,
		" a: %b":                   `{"a":"%b"}`,
		"1.5: true":                `{"1.5":"true"}`,
		"\u00a0: é🤖":               `{"` + "\u00a0" + `":"é🤖"}`,

		// Texts in quotes.
		`'it''s': "\"\\\/\n\x41\u00e9\U0001F916\_\e"`: `{"it's":"\"\\/\nAé🤖` + "\u00a0" + `\u001b"}`,
		`"a: b # c": ''`: `{"a: b # c":""}`,
	} {
		for _, form := range []Form{byHand, generated} {
			if diff := cmp.Diff(want, read(text, form)); diff != "" {
				t.Errorf("%q, %+v: -want +got:\n%s", text, form, diff)
			}
		}
	}
}

// Some texts are valid in one form of files and faults in the other.
func TestForms(t *testing.T) {
	for _, c := range []struct{ text, byHand, generated string }{
		{"{a: [b,\n  c],\n\td: e}", `{"a":["b","c"],"d":"e"}`, "3:1: U+0009: tabs, control characters and the like must be escaped, in double quotes"},
		{"a: [b,\n  c]", `{"a":["b","c"]}`, "1:4: it cannot be read as YAML: sequence end token ']' not found on its line"},
		{"{a: b\n}", `{"a":"b"}`, "1:1: it cannot be read as YAML: could not find flow mapping end token '}' on its line"},
		{"{a, b: , c: d}", `{"a":null,"b":null,"c":"d"}`, "1:2: it must be a key, with a colon and a space after it, and a value"},
		{"{a:b}", `{"a":"b"}`, "1:2: it must be a key, with a colon and a space after it, and a value"},
		{`a: "\uD83E\uDD16"`, `{"a":"🤖"}`, "1:5: it cannot be read as YAML: found an escape that stands for no character"},
		{"a: b\rc: d", `{"a":"b","c":"d"}`, "1:5: U+000D: tabs, control characters and the like must be escaped, in double quotes"},
		{"a: \u2028", `{"a":"\u2028"}`, "1:4: U+2028: tabs, control characters and the like must be escaped, in double quotes"},
		{"a: b #" + strings.Repeat("x", maxLine), `{"a":"b"}`, "1:1: a line of 4102 bytes: it must have 4096 at most"},
		{"? a\n: b\n? c\n: - d\n", "1:1: a question mark: a key must stand on its line, with a colon after it\n3:1: a question mark: a key must stand on its line, with a colon after it", `{"a":"b","c":["d"]}`},
	} {
		if diff := cmp.Diff(c.byHand, read(c.text, byHand)); diff != "" {
			t.Errorf("%q, by hand: -want +got:\n%s", c.text, diff)
		}
		if diff := cmp.Diff(c.generated, read(c.text, generated)); diff != "" {
			t.Errorf("%q, generated: -want +got:\n%s", c.text, diff)
		}
	}
}

// A number in a generated file has only one valid form.
func TestCount(t *testing.T) {
	for text, want := range map[string][2]bool{
		"1000": {true, true}, "0": {true, true}, "1_000": {true, false}, "'1000'": {true, false},
		"-1": {false, false}, "+1": {false, false}, "01": {false, false}, "1001": {false, false}, "1.0": {false, false}, "_1": {false, false}, "~": {false, false},
	} {
		for i, form := range []Form{byHand, generated} {
			d := Parse("f.yaml", text, form)
			n := -1
			Count(&n, 0, 1000)(d.Root())
			if ok := len(d.Faults()) == 0; ok != want[i] || ok != (n >= 0) {
				t.Errorf("%s, %+v: %d, %v", text, form, n, d.Faults())
			}
		}
	}
}

// Faults that the test files of the gateway's configuration do not have.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"a: b\n  c":                "2:3: it cannot be read as YAML: value is not allowed in this context",
		"a\n  b: c":                "1:1: it must be a key, with a colon and a space after it",
		"a: b: c":                  "1:4: it cannot be read as YAML: mapping value is not allowed in this context",
		"a: - b":                   "1:4: it cannot be read as YAML: value is not allowed in this context",
		"a:\nb":                    "2:1: it must be a key, with a colon and a space after it",
		"a: 'b":                    "1:4: it cannot be read as YAML: could not find end character of single-quoted text",
		"a: \"b\n  c\"":            "1:4: it cannot be read as YAML: could not find end character of double-quoted text",
		"a: \"\\\n\"":              "1:5: it cannot be read as YAML: found an escape that stands for no character",
		"a: \"\\":                  "1:5: it cannot be read as YAML: found an escape that stands for no character",
		"- a\nb: c":                "2:1: it cannot be read as YAML: value is not allowed in this context",
		"[a]: b":                   "1:4: it cannot be read as YAML: found an invalid key for this map",
		"{[a], b}":                 "1:5: it cannot be read as YAML: found an invalid key for this map",
		"{, a: b}":                 "1:2: it cannot be read as YAML: value is not allowed in this context",
		"[a,, b]":                  "1:4: it cannot be read as YAML: value is not allowed in this context",
		"[a: b]":                   "1:3: it cannot be read as YAML: ',' or ']' must be specified",
		"{a: [b:c]}":               "1:7: it cannot be read as YAML: ',' or ']' must be specified",
		"a: b\n\x00c: d":           "2:1: it cannot be read as YAML: found a byte that is 0",
		"a: @b":                    "1:4: it cannot be read as YAML: '@' is a reserved character",
		"--- a: b":                 "1:5: it cannot be read as YAML: mapping value is not allowed in this context",
		"a: b\n...":                "2:1: the end of a document: it must be left out",
		"a<<: b":                   "1:1: <<: it must be written out",
		"a: !b [&c d, *e]":         "1:4: a tag: it must be left out; a text with ! needs quotes\n1:8: an anchor: it must be left out; a text with & needs quotes\n1:14: an alias: it must be written out; a name with * needs quotes",
		"null: a":                  "1:1: it has no value: it must be a name",
		"a: b\n'a': c":             `2:1: "a" stands here twice: it must stand here once`,
		strings.Repeat("- ", 17):   "1:33: brackets or dashes within 16 others: that is the most that is allowed",
		strings.Repeat("[", 17):    "1:17: brackets or dashes within 16 others: that is the most that is allowed",
		"\t# a comment\n\ta: b":    "1:1: a tab: lines must be indented with spaces",
		"a: b" + "\xff":            "1:1: the line is not UTF-8, which it must be",
		"{a: {b: [c, {d: ~}]}":     "1:1: it cannot be read as YAML: could not find flow mapping end token '}'",
		strings.Repeat("#", 1<<21): "1:1: the file is larger than 1048576 bytes, which is the most that is allowed",
	} {
		if diff := cmp.Diff(want, read(text, byHand)); diff != "" {
			t.Errorf("%.80q: -want +got:\n%s", text, diff)
		}
	}
}

// A fault has the path of the value, its line and its column.
func TestPlaces(t *testing.T) {
	const text = "a:\n  b c: [x, {d: é, e: y}]\n  f:\n    - g: 1\n      h: {}\n    -\n"
	d := Parse("f.yaml", text, byHand)
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
		"f.yaml:6:5: a.f[1]: here":          items[1],
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
		d := Parse("f.yaml", string(text), byHand)
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

// Any text can be read, or has faults with a line and a column. If both forms can read it, they read
// the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"a:\n  - b: 'c'\n    \"d\": [e, {f: g}]\n? h\n: |\n  i\n\nj: ~ # k\r\n", "--- {a: \"\\x41\\u00e9\"}", "a: &b [*c, !d e]", "%A\n---\n...\n", "{[?: ", "\"\\", "<<: a",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var results []string
		for _, form := range []Form{byHand, generated} {
			d := Parse("f.yaml", text, form)
			shown := fmt.Sprint(content(d.Root()))
			if faults := d.Faults(); len(faults) == 0 {
				results = append(results, shown)
				checkTree(t, d)
			} else if last := faults[len(faults)-1]; last.Line < 1 || last.Column < 1 || last.Problem == "" {
				t.Errorf("%q: %+v", text, last)
			}
		}
		if len(results) == 2 && results[0] != results[1] {
			t.Errorf("%q is %s by hand, and %s generated", text, results[0], results[1])
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
