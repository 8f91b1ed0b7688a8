package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/llm"
)

var noon = time.Date(2026, time.February, 20, 14, 32, 1, 0, time.UTC)

func used(at time.Time, n int) state.Entry { return state.Entry{Time: at, Count: n} }

// everyField has every field that a file can have; testdata/written.yaml is
// its text.
func everyField() File {
	at := noon.Add(1).In(time.FixedZone("", 3600))
	midnight := time.Date(2026, time.February, 20, 0, 0, 0, 0, time.FixedZone("PST", -8*3600))
	return File{
		Quotas: map[string]state.Quota{
			"gpt-4o": {
				MaxRPM: 500, MaxTPM: 30_000, MaxRPD: 10_000, MaxInputTPM: 20_000, MaxOutputTPM: 10_000,
				MaxTPD: state.MaxQuota, MaxConcurrent: 8, DayResetsAt: "00:00 America/Los_Angeles", Reserve: 12.5, ReserveTokens: "most", OnOverrun: "cut", Pace: state.PaceEven, PaceBurst: 5,
				Count: everyWeight(),
			},
			" spaces: and # signs ": {},
			"1.5":                   {MaxRPM: 1},
			"No":                    {MaxRPM: 2},
			"ends:":                 {},
			"\"\\\u2028":            {MaxRPM: 3},
			"org/model:latest":      {MaxRPM: 4},
			"模型 🤖":                  {MaxRPM: 5},
		},
		State: map[string]state.Usage{
			"gpt-4o": {
				Requests:     []time.Time{at, noon.Add(time.Second)},
				Tokens:       []state.Entry{used(at, 1500), used(noon.Add(time.Second), 0)},
				DayStart:     midnight,
				DayCount:     42,
				InputTokens:  []state.Entry{used(at, 1000)},
				OutputTokens: []state.Entry{used(at, 500)},
				DayTokens:    new(used(midnight, 1500)),
			},
			"idle": {},
		},
	}
}

// everyWeight has every weight.
func everyWeight() llm.TokenWeights {
	weight := func(text string) llm.Weight {
		w, err := llm.ParseWeight(text)
		if err != nil {
			panic(err)
		}
		return w
	}
	return llm.TokenWeights{CachedInput: weight("0"), CacheWrite: weight("1.25"), Output: weight("5"), Reasoning: weight("0.0001")}
}

// diffFiles treats times as equal if they are the same moment, and an empty map or list as
// equal to none.
func diffFiles(want, got File) string { return cmp.Diff(want, got, cmpopts.EquateEmpty()) }

// The files are written as gopkg.in/yaml.v3 writes them, except example.yaml, which is in the
// documentation, and by-hand.yaml.
func TestRead(t *testing.T) {
	zero := state.Usage{}
	names := map[string]state.Quota{}
	for i, name := range []string{
		"gemini-2.5-pro", "org/model", "org/model:latest", "my model", "a: b", "#1", "1.5", "2026-02-20", "null", "true", "~", "- x",
		"it's", `say "hi"`, `back\slash`, "soft\u00adhyphen", "modèle", "模型", "🤖", "\u00a0", "@cf/meta", "[x]", " x ",
	} {
		names[name] = state.Quota{MaxRPM: i + 1}
	}
	long, wide := strings.Repeat("long/", 26), strings.Repeat("é", 65)
	for file, want := range map[string]File{
		"missing.yaml": {},
		"nothing.yaml": {},
		"full.yaml": {
			Quotas: map[string]state.Quota{
				"gemini-2.5-pro": {MaxRPM: 150, MaxTPM: 1_000_000, MaxRPD: 1000},
				"gpt-4o":         {MaxRPM: 500, MaxTPM: 30_000},
			},
			State: map[string]state.Usage{
				"gemini-2.5-pro": {
					Requests: []time.Time{noon.Add(123_456_789), noon.Add(500 * time.Millisecond), noon.Add(time.Second)},
					Tokens:   []state.Entry{used(noon.Add(123_456_789), 1500), used(noon.Add(500*time.Millisecond), 0)},
					DayStart: noon.Truncate(24 * time.Hour),
					DayCount: 42,
				},
				"gpt-4o": {DayStart: noon.Truncate(24 * time.Hour), DayCount: 7},
			},
		},
		"unused.yaml": {State: map[string]state.Usage{"forgotten": zero, "unused": zero}},
		"quotas.yaml": {Quotas: map[string]state.Quota{"gpt-4o": {MaxRPM: 500, MaxTPM: 30_000}}},
		"state.yaml": {State: map[string]state.Usage{
			"gpt-4o": {Requests: []time.Time{noon}, Tokens: []state.Entry{used(noon, state.MaxQuota)}, DayStart: noon, DayCount: 1},
		}},
		"names.yaml": {Quotas: names},
		"long-names.yaml": {
			Quotas: map[string]state.Quota{long: {MaxRPM: 1}, wide: {MaxRPM: 2}},
			State:  map[string]state.Usage{long: {DayCount: 1}, wide: {DayCount: 2}},
		},
		"example.yaml": {
			Quotas: map[string]state.Quota{"gemini-3-pro-preview": {MaxRPM: 150, MaxTPM: 1_000_000, MaxRPD: 1000}},
			State: map[string]state.Usage{"gemini-3-pro-preview": {
				Requests: []time.Time{noon.Add(123_456_789)},
				Tokens:   []state.Entry{used(noon.Add(123_456_789), 1500)},
				DayStart: noon.Truncate(24 * time.Hour),
				DayCount: 42,
			}},
		},
		"by-hand.yaml": {
			Quotas: map[string]state.Quota{
				"gpt-4o":           {MaxRPM: 500, MaxTPM: 30_000},
				"org/model:latest": {MaxRPD: 1000, DayResetsAt: "00:00 America/Los_Angeles"},
				"local":            {},
			},
			State: map[string]state.Usage{
				"gpt-4o": {
					Requests: []time.Time{noon, noon.Add(time.Second)},
					Tokens:   []state.Entry{used(noon, 3), used(noon.Add(time.Second), 4)},
					DayStart: noon.Truncate(24 * time.Hour),
					DayCount: 2,
				},
				"local": zero,
			},
		},
		"written.yaml": everyField(),
	} {
		t.Run(file, func(t *testing.T) {
			got, err := Read(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := diffFiles(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseOfNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "\r\n", "   \n", "# nothing\n", "---\n", "--- # nothing", "null", "{}", "--- {}\n", "\ufeff", "\ufeffquotas:\n", "quotas:\r\nstate:\r\n", "state: null", "{quotas: {}, state: {}}"} {
		got, err := parse("limits.yaml", text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := diffFiles(File{}, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestParseMistakes(t *testing.T) {
	const (
		number = "it must be a whole number from 0 to 9007199254740992"
		count  = "it must be a whole number from 0 to 4611686018427387904"
		moment = "it must be a time such as 2026-02-20T14:32:01.5Z"
	)
	quota := func(line string) string { return "quotas:\n  gpt-4o:\n    " + line + "\n    max_tpm: 5\n" }
	usage := func(line string) string {
		return "state:\n  gpt-4o:\n    requests: []\n    tokens: []\n    day_start: 2026-02-20T14:32:01Z\n    " + line + "\n"
	}
	for _, c := range []struct {
		mistake, text, at, says string
	}{
		{"an unknown field", quota("max_rpmm: 5"), "3:5", `quotas.gpt-4o: unknown field "max_rpmm" (did you mean max_rpm?): it must be one of max_rpm, max_tpm, max_rpd, max_input_tpm`},
		{"an unknown field on top", "quotas: {}\nquota: {}\n", "2:1", `unknown field "quota" (did you mean quotas?): it must be one of quotas, state`},
		{"an unknown field of usage", usage("day_counts: 5"), "6:5", `unknown field "day_counts"`},
		{"an unknown field of an entry", usage("day_count: 1\n    input_tokens:\n      - tme: 2026-02-20T14:32:01Z"), "8:9", `state.gpt-4o.input_tokens[0]: unknown field "tme" (did you mean time?): it must be one of time, count`},
		{"another case", quota("MAX_RPM: 5"), "3:5", `unknown field "MAX_RPM"`},
		{"a field twice", quota("max_tpm: 5"), "4:5", `quotas.gpt-4o: duplicate key "max_tpm": it must occur once`},
		{"a field twice, once in quotes", quota(`"max_tpm": 5`), "4:5", `quotas.gpt-4o: duplicate key "max_tpm": it must occur once`},
		{"quotas twice", "quotas: {}\nstate: {}\nquotas: {}\n", "3:1", `duplicate key "quotas": it must occur once`},
		{"a model twice", "quotas:\n  a:\n    max_rpm: 1\n  'a':\n    max_rpm: 2\n", "4:3", `quotas: duplicate key "a": it must occur once`},
		{"a model twice in its state", "state:\n  a: ~\n  b: ~\n  a: ~\n", "4:3", `state: duplicate key "a": it must occur once`},
		{"a model twice on a line", `quotas: {a: {}, "\x61": {}}`, "1:17", `quotas: duplicate key "a": it must occur once`},

		{"null for a name", "quotas:\n  null: {}\n", "2:3", "quotas: it has no value: it must be a name"},
		{"a long name", "quotas:\n  " + strings.Repeat("x", 513) + ": {}\n", "2:3", "a name must have 1 to 512 bytes"},

		{"text for a number", quota("max_rpm: fast"), "3:14", `quotas.gpt-4o.max_rpm: "fast": ` + number},
		{"spaces after it", quota("max_rpm: fast   "), "3:14", `quotas.gpt-4o.max_rpm: "fast": ` + number},
		{"a comment after it", quota("max_rpm: fast  # or not"), "3:14", `quotas.gpt-4o.max_rpm: "fast": ` + number},
		{"a float", quota("max_rpm: 1.5"), "3:14", number},
		{"a whole float", quota("max_rpm: 5.0"), "3:14", number},
		{"an exponent", quota("max_rpm: 1e3"), "3:14", number},
		{"infinity", quota("max_rpm: .inf"), "3:14", number},
		{"a negative quota", quota("max_rpm: -1"), "3:14", `quotas.gpt-4o.max_rpm: "-1": ` + number},
		{"a sign", quota("max_rpm: +1"), "3:14", number},
		{"hexadecimal", quota("max_rpm: 0x10"), "3:14", number},
		{"octal", quota("max_rpm: 010"), "3:14", number},
		{"a boolean", quota("max_rpm: true"), "3:14", number},
		{"two numbers", quota("max_rpm: 1 2"), "3:14", number},
		{"too large a quota", quota("max_rpm: 9007199254740993"), "3:14", number},
		{"more than 64 bits", quota("max_rpm: 99999999999999999999"), "3:14", number},
		{"no number", quota("max_rpm:"), "3:5", `quotas.gpt-4o.max_rpm: it has no value: ` + number},
		{"no number at the end", "quotas:\n  gpt-4o:\n    max_rpm:", "3:5", `quotas.gpt-4o.max_rpm: it has no value: ` + number},
		{"null for a number", quota("max_rpm: null"), "3:5", `quotas.gpt-4o.max_rpm: it has no value: ` + number},
		{"a list for a number", quota("max_rpm: [5]"), "3:5", `quotas.gpt-4o.max_rpm: a list: ` + number},
		{"a mapping for a number", quota("max_rpm:\n      a: 5"), "3:5", `quotas.gpt-4o.max_rpm: a mapping: ` + number},
		{"a negative count", usage("day_count: -3"), "6:16", `state.gpt-4o.day_count: "-3": ` + count},
		{"a negative count of tokens", usage("day_count: 1\n    input_tokens:\n    - {time: 2026-02-20T14:32:01Z, count: -1}"), "8:43", `state.gpt-4o.input_tokens[0].count: "-1": ` + count},
		{"too large a count", usage("day_count: 4611686018427387905"), "6:16", count},

		{"no time of day", quota("day_resets_at: midnight"), "3:20", `day_resets_at of "midnight": it must be a time of day and a time zone`},
		{"no such zone", quota("day_resets_at: 00:00 Mars/Olympus"), "3:20", `it must be a time of day and a time zone`},
		{"no such hour", quota(`day_resets_at: "25:00 UTC"`), "3:20", `it must be a time of day and a time zone`},
		{"null for a time of day", quota("day_resets_at: ~"), "3:5", "quotas.gpt-4o.day_resets_at: it has no value: it must be a time of day and a time zone"},

		{"no time", usage("day_count: 1\n    day_tokens: {time: soon, count: 1}"), "7:24", `"soon": ` + moment},
		{"a day for a time", usage("day_count: 1\n    day_tokens: {time: 2026-02-20, count: 1}"), "7:24", moment},
		{"a time with a space", usage("day_count: 1\n    day_tokens: {time: 2026-02-20 14:32:01Z, count: 1}"), "7:24", moment},
		{"a time without a zone", usage("day_count: 1\n    day_tokens: {time: '2026-02-20T14:32:01', count: 1}"), "7:24", moment},
		{"a time before the year 0", usage("day_count: 1\n    day_tokens: {time: '0000-01-01T00:00:00+01:00', count: 1}"), "7:24", moment},
		{"seconds for a time", usage("day_count: 1\n    day_tokens: {time: 1771597921, count: 1}"), "7:24", moment},

		{"a list for the file", "- quotas\n", "1:1", "a list: it must be a mapping"},
		{"text for the file", "limits\n", "1:1", "a single value: it must be a mapping"},
		{"a number for the file", "5", "1:1", "a single value: it must be a mapping"},
		{"a list for quotas", "quotas:\n  - gpt-4o\n", "1:1", "quotas: a list: it must be a mapping"},
		{"a list right below quotas", "quotas:\n- gpt-4o\n", "1:1", "quotas: a list: it must be a mapping"},
		{"brackets for quotas", "quotas: []\n", "1:1", "quotas: a list: it must be a mapping"},
		{"text for quotas", "quotas: none\n", "1:9", "quotas: a single value: it must be a mapping"},
		{"text for a quota", "quotas:\n  gpt-4o: none\n", "2:11", "quotas.gpt-4o: a single value: it must be a mapping"},
		{"no quota", "quotas:\n  gpt-4o:\n  local:\n    max_rpm: 1\n", "2:3", "quotas.gpt-4o: it has no value: it must be a mapping; {} is without limits"},
		{"null for a quota", "quotas:\n  gpt-4o: null\n", "2:3", "quotas.gpt-4o: it has no value: it must be a mapping; {} is without limits"},
		{"a mapping for a list", "state:\n  a:\n    requests:\n      time: 2026-02-20T14:32:01Z\n", "3:5", "state.a.requests: a mapping: it must be a list"},
		{"no space behind a colon", "quotas:\n  gpt-4o:\n    max_rpm:5\n", "3:5", "quotas.gpt-4o: a single value: it must be a mapping: a space must follow the colon"},
		{"text for a list", "state:\n  a:\n    requests: none\n", "3:15", "state.a.requests: a single value: it must be a list"},
		{"a list in a list", "state:\n  a:\n    requests:\n      - - 2026-02-20T14:32:01Z\n", "4:9", `state.a.requests[0]: a list: ` + moment},
		{"a time for an entry", usage("day_count: 1\n    input_tokens:\n      - 2026-02-20T14:32:01Z"), "8:9", "state.gpt-4o.input_tokens[0]: a single value: it must be a mapping"},

		{"no colon", "quotas\n", "1:1", "a single value: it must be a mapping"},
		{"too far left", "quotas:\n    gpt-4o:\n        max_rpm: 1\n      max_tpm: 1\n", "4:7", "it cannot be read as YAML: did not find expected key, while parsing a block mapping that begins at 2:5"},
		{"a tab for indentation", "quotas:\n\tgpt-4o: {}\n", "2:1", "it cannot be read as YAML: found character that cannot start any token"},
		{"an open quote", "quotas:\n  \"gpt-4o: {}\n", "3:1", "found unexpected end of stream, while scanning a quoted scalar that begins at 2:3"},
		{"an open brace", "quotas: {gpt-4o: {max_rpm: 5}\nstate: {}\n", "2:1", "did not find expected ',' or '}', while parsing a flow mapping that begins at 1:9"},
		{"a list for a name", "quotas:\n  [a]: {}\n", "2:3", "a list or a mapping for a key: it must be a name"},
		{"an empty name", "quotas:\n  \"\": {}\n", "2:3", "quotas: it is empty: it must be a name"},
		{"a database", "SQLite format 3\x00\x10\x00", "1:1", "control characters are not allowed"},

		{"a tag", quota("max_rpm: !!int 5"), "3:14", "a tag: it must be left out"},
		{"a tag on a mapping", "quotas: !!map\n  gpt-4o: {}\n", "1:9", "a tag"},
		{"a tag on a name", "quotas:\n  !!binary /w==: {}\n", "2:3", "a tag"},
		{"a second document", "quotas: {}\n---\nquotas: {}\n", "2:1", "a second document: there must be one"},
		{"an empty second document", "quotas: {}\n---\n", "2:1", "a second document"},
		{"a document after an indented one", "  quotas: {}\n---\n", "2:1", "a second document"},

		{"deep keys", "a: \n b: \n  c: \n   d: \n", "1:1", `unknown field "a"`},

		{"a byte that is not UTF-8", "quotas:\n  modèle\xff: {}\n", "2:1", "the line is not UTF-8, which it must be"},
		{"UTF-16", "\xff\xfeq\x00u\x00", "1:1", "the line is not UTF-8, which it must be"},

		{"no usage", "state:\n  a:\n", "2:3", "state.a: it lacks requests: the file may have been cut short"},
		{"no requests", "state:\n  a:\n    tokens: []\n    day_start: 2026-02-20T14:32:01Z\n    day_count: 1\n", "2:3", "state.a: it lacks requests: the file may have been cut short"},
		{"no day_count", "state:\n  a: {requests: [], tokens: [], day_start: '2026-02-20T14:32:01Z'}\n", "2:3", "state.a: it lacks day_count: the file may have been cut short"},
		{"an entry without a count", usage("day_count: 1\n    input_tokens:\n      - time: 2026-02-20T14:32:01Z"), "8:9", "state.gpt-4o.input_tokens[0]: it lacks count: the file may have been cut short"},
		{"an entry without a time", usage("day_count: 1\n    day_tokens: {count: 1}"), "7:5", "state.gpt-4o.day_tokens: it lacks time: the file may have been cut short"},
	} {
		t.Run(c.mistake, func(t *testing.T) {
			got, err := parse("limits.yaml", c.text)
			if err == nil {
				t.Fatalf("no error, but %+v", got)
			}
			if want := "ratelimit: limits.yaml:" + c.at + ": "; !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v\nit must start with %q and say %q", err, want, c.says)
			}
			if got.Quotas != nil || got.State != nil {
				t.Errorf("with the error comes %+v", got)
			}
		})
	}
}

// A file that was cut short by a crash is an error, unless the rest is a valid file.
func TestParseCutShort(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	inUsage := strings.Index(string(text), "requests:")
	whole := strings.LastIndex(string(text), "42")
	for cut := range len(text) {
		_, err := parse("limits.yaml", string(text[:cut]))
		if inUsage <= cut && cut <= whole && err == nil {
			t.Errorf("no error where the file ends after %q", text[:cut])
		}
	}
}

func TestReadFaults(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file.yaml")
	if err := os.WriteFile(file, []byte("quotas: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<40); err != nil {
		t.Skip("no sparse files here:", err)
	}
	for _, c := range []struct{ path, says string }{
		{file, file + ":1:9: quotas: a single value: it must be a mapping"},
		{dir, dir + ": it must be a file, and is d"},
		{filepath.Join(file, "below"), filepath.Join(file, "below")},
		{large, large + ": 1099511627776 bytes: it must have 67108864 at most"},
		{"a\x00b", "invalid"},
	} {
		got, err := Read(c.path)
		if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, it must say %q", c.path, err, c.says)
		}
		if got.Quotas != nil || got.State != nil {
			t.Errorf("%s: with the error comes %+v", c.path, got)
		}
	}
}

func TestWrite(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "written.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	parent := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(parent, "newer", "limits.yaml")
	if err := Write(path, everyField()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
	wantModes(t, map[string]fs.FileMode{path: 0o600, filepath.Dir(path): fs.ModeDir | 0o700, parent: fs.ModeDir | 0o700})
	wantFiles(t, filepath.Dir(path), "limits.yaml")
}

func TestWriteOfNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	if err := Write(path, File{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "quotas: {}\nstate: {}\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWriteReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "limits.yaml")
	if err := os.WriteFile(path, []byte("anything"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	wantWritten(t, path)
	wantModes(t, map[string]fs.FileMode{path: 0o600})
	wantFiles(t, dir, "limits.yaml")
}

func TestWriteRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	wantWritten(t, "limits.yaml")
	wantFiles(t, ".", "limits.yaml")
}

// A link stays a link, and the file that it leads to is replaced, or created.
func TestWriteThroughLinks(t *testing.T) {
	for _, c := range []struct {
		name     string
		links    map[string]string // in the order of their names
		old      string
		from, to string
	}{
		{"absolute", map[string]string{"a": "/target/limits.yaml"}, "target/limits.yaml", "a", "target/limits.yaml"},
		{"relative", map[string]string{"d/a": "../target/limits.yaml"}, "target/limits.yaml", "d/a", "target/limits.yaml"},
		{"two", map[string]string{"a": "d/b", "d/b": "limits.yaml"}, "d/limits.yaml", "a", "d/limits.yaml"},
		{"to no file yet", map[string]string{"a": "target/new/limits.yaml"}, "", "a", "target/new/limits.yaml"},
		{"of a directory", map[string]string{"d/e": "../target/deep", "target/a": "b"}, "", "d/e/../a", "target/b"},
		{"up from a linked directory", map[string]string{"d/e": "../target/deep", "target/deep/a": "../b"}, "", "d/e/a", "target/b"},
		{"to a new directory next to a linked one", map[string]string{"d/e": "../target/deep"}, "", "d/e/../new/limits.yaml", "target/new/limits.yaml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for _, dir := range []string{"d", "target/deep"} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for link, to := range c.links {
				if filepath.IsAbs(to) {
					to = root + to
				}
				if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
					t.Skip("no links here:", err)
				}
			}
			if c.old != "" {
				if err := os.WriteFile(filepath.Join(root, c.old), []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			wantWritten(t, root+"/"+c.from)
			for link := range c.links {
				if _, err := os.Readlink(filepath.Join(root, link)); err != nil {
					t.Errorf("the link is none any more: %v", err)
				}
			}
			if got, err := Read(filepath.Join(root, c.to)); err != nil || diffFiles(everyField(), got) != "" {
				t.Errorf("%s holds %+v, %v", c.to, got, err)
			}
			wantModes(t, map[string]fs.FileMode{filepath.Join(root, c.to): 0o600})
			wantNoTemporaries(t, root)
		})
	}
}

func TestWriteFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		path string
		says string
		make func(root string) error
	}{
		{"a directory in the way", "limits.yaml", "rename", func(root string) error {
			return os.MkdirAll(filepath.Join(root, "limits.yaml", "kept"), 0o700)
		}},
		{"a file for a directory", "file/limits.yaml", "mkdir", func(root string) error {
			return os.WriteFile(filepath.Join(root, "file"), []byte("kept"), 0o600)
		}},
		{"links in a circle", "a", "too many links", func(root string) error {
			return errors.Join(os.Symlink("b", filepath.Join(root, "a")), os.Symlink("a", filepath.Join(root, "b")))
		}},
		{"too long a name", strings.Repeat("x", 1000), "rename", func(string) error { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			if err := c.make(root); err != nil {
				t.Fatal(err)
			}
			before := pathsBelow(t, root)
			err := Write(root+"/"+c.path, everyField())
			if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, it must say %q", err, c.says)
			}
			if diff := cmp.Diff(before, pathsBelow(t, root)); diff != "" && c.path != "new/" {
				t.Error(diff)
			}
			wantNoTemporaries(t, root)
		})
	}
}

// Content that Read would not accept is not written.
func TestWriteRefuses(t *testing.T) {
	usage := func(u state.Usage) File { return File{State: map[string]state.Usage{"gpt-4o": u}} }
	quota := func(name string, q state.Quota) File { return File{Quotas: map[string]state.Quota{name: q}} }
	for _, c := range []struct {
		s    File
		says string
	}{
		{quota("", state.Quota{}), `model "": a name must have 1 to 512 bytes`},
		{quota("\xff", state.Quota{}), `model "\xff": a name must have 1 to 512 bytes of UTF-8`},
		{quota("a\nb", state.Quota{}), `model "a\nb": a name must have 1 to 512 bytes of UTF-8, and no control characters`},
		{quota("gpt-4o", state.Quota{MaxRPM: -1}), `model "gpt-4o": max_rpm of -1: it must be from 1`},
		{quota("gpt-4o", state.Quota{DayResetsAt: "noon"}), `model "gpt-4o": day_resets_at of "noon": it must be`},
		{quota("gpt-4o", state.Quota{DayResetsAt: "00:00" + strings.Repeat(" ", 1015) + "UTC"}), "it must be a time of day and a time zone"},
		{File{State: map[string]state.Usage{"": {}}}, `model "": a name must have 1 to 512 bytes`},
		{usage(state.Usage{DayCount: -1}), `model "gpt-4o": a count of -1: it must be from 0 to 4611686018427387904`},
		{usage(state.Usage{DayCount: math.MaxInt}), "a count of 9223372036854775807"},
		{usage(state.Usage{Tokens: []state.Entry{{Count: -2}}}), "a count of -2"},
		{usage(state.Usage{InputTokens: []state.Entry{{Count: -3}}}), "a count of -3"},
		{usage(state.Usage{OutputTokens: []state.Entry{{Count: -4}}}), "a count of -4"},
		{usage(state.Usage{DayTokens: &state.Entry{Count: -5}}), "a count of -5"},
		{usage(state.Usage{DayStart: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}), "a time in the year 10000: it must be from 0 to 9999"},
		{usage(state.Usage{Requests: []time.Time{time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)}}), "a time in the year -1"},
		{usage(state.Usage{Requests: make([]time.Time, 2_500_000)}), "it must have 67108864 at most"},
	} {
		t.Run(c.says, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "limits.yaml")
			wantWritten(t, path)
			err := Write(path, c.s)
			if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: "+path+": ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, it must say %q", err, c.says)
			}
			if got, err := Read(path); err != nil || diffFiles(everyField(), got) != "" {
				t.Errorf("the old file holds %+v, %v", got, err)
			}
			wantFiles(t, dir, "limits.yaml")
		})
	}
}

// A reader sees a complete file while other goroutines write it.
func TestWriteWhileRead(t *testing.T) {
	const writers, each = 4, 50
	dir := t.TempDir()
	path := filepath.Join(dir, "limits.yaml")
	if err := Write(path, whole(1)); err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				if err := Write(path, whole(1+w*each+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		writing.Wait()
	}()
	for reading := true; reading; {
		select {
		case <-written:
			reading = false
		default:
		}
		wantWhole(t, path)
	}
	wantFiles(t, dir, "limits.yaml")
}

// whole returns a file with n models, each with a quota of n.
func whole(n int) File {
	s := File{Quotas: map[string]state.Quota{}}
	for i := range n {
		s.Quotas[fmt.Sprint("model-", i)] = state.Quota{MaxRPM: n}
	}
	return s
}

func wantWhole(t *testing.T, path string) {
	t.Helper()
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffFiles(whole(len(got.Quotas)), got); diff != "" || len(got.Quotas) == 0 {
		t.Fatalf("a torn file: %s", diff)
	}
}

func wantWritten(t *testing.T, path string) {
	t.Helper()
	if err := Write(path, everyField()); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffFiles(everyField(), got); diff != "" {
		t.Fatal(diff)
	}
}

func wantModes(t *testing.T, modes map[string]fs.FileMode) {
	t.Helper()
	for path, want := range modes {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, pathsBelow(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func wantNoTemporaries(t *testing.T, dir string) {
	t.Helper()
	for _, path := range pathsBelow(t, dir) {
		if strings.Contains(path, "tmp") {
			t.Errorf("%s is left", path)
		}
	}
}

// pathsBelow returns the paths below dir.
func pathsBelow(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, _ fs.DirEntry, err error) error {
		if path != "." {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestRoundTrip(t *testing.T) { rapid.Check(t, propertyRoundTrip) }

func propertyRoundTrip(t *rapid.T) {
	upTo := func(most int) *rapid.Generator[int] {
		return rapid.OneOf(rapid.IntRange(0, most), rapid.SampledFrom([]int{0, 1, most}))
	}
	count, most := upTo(state.MaxCount), upTo(state.MaxQuota)
	at := rapid.Custom(func(t *rapid.T) time.Time {
		first, last := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
		at := time.Unix(rapid.Int64Range(first, last).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
		return at.In(time.FixedZone("", rapid.IntRange(-14*3600, 14*3600).Draw(t, "zone")))
	})
	entry := rapid.Custom(func(t *rapid.T) state.Entry { return used(at.Draw(t, "time"), count.Draw(t, "count")) })
	entries := rapid.SliceOfN(entry, 0, 4)
	quota := rapid.Custom(func(t *rapid.T) state.Quota {
		return state.Quota{
			MaxRPM: most.Draw(t, "rpm"), MaxTPM: most.Draw(t, "tpm"), MaxRPD: most.Draw(t, "rpd"),
			MaxInputTPM: most.Draw(t, "input"), MaxOutputTPM: most.Draw(t, "output"), MaxTPD: most.Draw(t, "tpd"),
			MaxConcurrent: most.Draw(t, "concurrent"), MaxTokensInFlight: most.Draw(t, "in flight"), MaxEnqueuedTokens: most.Draw(t, "enqueued"), DayResetsAt: rapid.SampledFrom([]string{"", "00:00 UTC", "7:05 Europe/Oslo"}).Draw(t, "day"),
		}
	})
	usage := rapid.Custom(func(t *rapid.T) state.Usage {
		return state.Usage{
			Requests: rapid.SliceOfN(at, 0, 4).Draw(t, "requests"), Tokens: entries.Draw(t, "tokens"),
			DayStart: at.Draw(t, "start"), DayCount: count.Draw(t, "count"),
			InputTokens: entries.Draw(t, "input"), OutputTokens: entries.Draw(t, "output"), DayTokens: rapid.Ptr(entry, true).Draw(t, "day"),
		}
	})
	s := File{
		Quotas: rapid.MapOfN(hardNames(), quota, 0, 4).Draw(t, "quotas"),
		State:  rapid.MapOfN(hardNames(), usage, 0, 4).Draw(t, "state"),
	}
	text, err := format(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parse("limits.yaml", string(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := diffFiles(s, got); diff != "" {
		t.Fatal(diff)
	}
	if again, err := format(got); err != nil || string(again) != string(text) {
		t.Fatalf("written again, it is %q, %v", again, err)
	}
}

// hardNames are names that YAML could take for something else.
func hardNames() *rapid.Generator[string] {
	parts := rapid.SampledFrom([]string{
		"gpt", "4o", "-", ".", "/", ":", ": ", " #", "#", " ", "  ", "'", `"`, "\\", "?", "? ", "- ", "<<", "*", "&", "!", "!!str ", "|", ">", "%", "@", "`",
		"[", "]", "{", "}", ",", "null", "~", "true", "No", "1", "1.5", "0x1f", "1e3", ".inf", "2026-02-20", "---", "...", "é", "模", "🤖", "\u00a0", "\u00ad", "\u2028", "\ufeff", "\ufffd", "\uffff",
	})
	joined := rapid.Map(rapid.SliceOfN(parts, 1, 6), func(parts []string) string { return strings.Join(parts, "") })
	return rapid.OneOf(joined, rapid.StringN(1, 40, -1)).Filter(func(name string) bool { return modelname.Check(name) == nil })
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("no files to start from", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		"quotas: {\"a\\x41\\u00e9\\U0001F600\": {max_rpm: 5,}, 'it''s': {}} # x\r\nstate: ~\r\n", "quotas:\n  ? a\n  : max_rpm: 1\n    max_tpm: 2\n",
		"state:\n a:\n  requests:\n  - 2026-02-20T14:32:01Z\n  tokens:\n  -\n   time: 2026-02-20T14:32:01Z\n   count: 1\n  day_count: 1\n  day_start: 0000-01-01T00:00:00Z\n",
		"--- {}", "a: &a [*a]", "a: !!str |2-\n  b", "{[?: ", "\"\\", "%TAG ! x", "\xff", "<<: a", "a: >+ # x\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parse("limits.yaml", string(text))
		if err != nil {
			if s.Quotas != nil || s.State != nil || !strings.HasPrefix(err.Error(), "ratelimit: limits.yaml:") {
				t.Fatalf("%+v, %v", s, err)
			}
			return
		}
		written, err := format(s)
		if err != nil {
			t.Fatalf("%q is read and not written: %v", text, err)
		}
		again, err := parse("limits.yaml", string(written))
		if err != nil {
			t.Fatalf("%q is written %q: %v", text, written, err)
		}
		if diff := diffFiles(s, again); diff != "" {
			t.Fatalf("%q is written %q: %s", text, written, diff)
		}
	})
}

// A file without quotas or usage differs from a file with an empty mapping of them.
func TestReadOfNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	for text, want := range map[string]File{
		"":                        {},
		"quotas:\nstate: ~\n":     {},
		"quotas: {}\n":            {Quotas: map[string]state.Quota{}},
		"quotas: {}\nstate: {}\n": {Quotas: map[string]state.Quota{}, State: map[string]state.Usage{}},
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v, -want +got:\n%s", text, err, diff)
		}
	}
}
