package ratelimit

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

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var yamlAt = time.Date(2026, time.February, 20, 14, 32, 1, 0, time.UTC)

// everySaved has every field that a file can have; testdata/yaml/written.yaml is
// its text.
func everySaved() saved {
	at := yamlAt.Add(1).In(time.FixedZone("", 3600))
	midnight := time.Date(2026, time.February, 20, 0, 0, 0, 0, time.FixedZone("PST", -8*3600))
	return saved{
		Quotas: map[string]ModelQuota{
			"gpt-4o": {
				MaxRPM: 500, MaxTPM: 30_000, MaxRPD: 10_000, MaxInputTPM: 20_000, MaxOutputTPM: 10_000,
				MaxTPD: maxQuota, MaxConcurrent: 8, DayResetsAt: "00:00 America/Los_Angeles",
			},
			" spaces: and # signs ": {},
			"1.5":                   {MaxRPM: 1},
			"No":                    {MaxRPM: 2},
			"ends:":                 {},
			"\"\\\u2028":            {MaxRPM: 3},
			"org/model:latest":      {MaxRPM: 4},
			"模型 🤖":                  {MaxRPM: 5},
		},
		State: map[string]UsageStats{
			"gpt-4o": {
				Requests:     []time.Time{at, yamlAt.Add(time.Second)},
				Tokens:       []TokenEntry{{at, 1500}, {yamlAt.Add(time.Second), 0}},
				DayStart:     midnight,
				DayCount:     42,
				InputTokens:  []TokenEntry{{at, 1000}},
				OutputTokens: []TokenEntry{{at, 500}},
				DayTokens:    &TokenEntry{midnight, 1500},
			},
			"idle": {},
		},
	}
}

// diffSaved takes times for equal that are the same moment, and an empty map or
// list for the same as none.
func diffSaved(want, got saved) string { return cmp.Diff(want, got, cmpopts.EquateEmpty()) }

// The files are as gopkg.in/yaml.v3 writes them, but for example.yaml, which is
// in the documentation, and by-hand.yaml.
func TestReadYAML(t *testing.T) {
	zero := UsageStats{}
	names := map[string]ModelQuota{}
	for i, name := range []string{
		"gemini-2.5-pro", "org/model", "org/model:latest", "my model", "a: b", "#1", "1.5", "2026-02-20", "null", "true", "~", "- x",
		"it's", `say "hi"`, `back\slash`, "soft\u00adhyphen", "modèle", "模型", "🤖", "\u00a0", "@cf/meta", "[x]", " x ",
	} {
		names[name] = ModelQuota{MaxRPM: i + 1}
	}
	long, wide := strings.Repeat("long/", 26), strings.Repeat("é", 65)
	for file, want := range map[string]saved{
		"missing.yaml": {},
		"nothing.yaml": {},
		"full.yaml": {
			Quotas: map[string]ModelQuota{
				"gemini-2.5-pro": {MaxRPM: 150, MaxTPM: 1_000_000, MaxRPD: 1000},
				"gpt-4o":         {MaxRPM: 500, MaxTPM: 30_000},
			},
			State: map[string]UsageStats{
				"gemini-2.5-pro": {
					Requests: []time.Time{yamlAt.Add(123_456_789), yamlAt.Add(500 * time.Millisecond), yamlAt.Add(time.Second)},
					Tokens:   []TokenEntry{{yamlAt.Add(123_456_789), 1500}, {yamlAt.Add(500 * time.Millisecond), 0}},
					DayStart: yamlAt.Truncate(24 * time.Hour),
					DayCount: 42,
				},
				"gpt-4o": {DayStart: yamlAt.Truncate(24 * time.Hour), DayCount: 7},
			},
		},
		"unused.yaml": {State: map[string]UsageStats{"forgotten": zero, "unused": zero}},
		"quotas.yaml": {Quotas: map[string]ModelQuota{"gpt-4o": {MaxRPM: 500, MaxTPM: 30_000}}},
		"state.yaml": {State: map[string]UsageStats{
			"gpt-4o": {Requests: []time.Time{yamlAt}, Tokens: []TokenEntry{{yamlAt, maxQuota}}, DayStart: yamlAt, DayCount: 1},
		}},
		"names.yaml": {Quotas: names},
		"long-names.yaml": {
			Quotas: map[string]ModelQuota{long: {MaxRPM: 1}, wide: {MaxRPM: 2}},
			State:  map[string]UsageStats{long: {DayCount: 1}, wide: {DayCount: 2}},
		},
		"example.yaml": {
			Quotas: map[string]ModelQuota{"gemini-3-pro-preview": {MaxRPM: 150, MaxTPM: 1_000_000, MaxRPD: 1000}},
			State: map[string]UsageStats{"gemini-3-pro-preview": {
				Requests: []time.Time{yamlAt.Add(123_456_789)},
				Tokens:   []TokenEntry{{yamlAt.Add(123_456_789), 1500}},
				DayStart: yamlAt.Truncate(24 * time.Hour),
				DayCount: 42,
			}},
		},
		"by-hand.yaml": {
			Quotas: map[string]ModelQuota{
				"gpt-4o":           {MaxRPM: 500, MaxTPM: 30_000},
				"org/model:latest": {MaxRPD: 1000, DayResetsAt: "00:00 America/Los_Angeles"},
				"local":            {},
			},
			State: map[string]UsageStats{
				"gpt-4o": {
					Requests: []time.Time{yamlAt, yamlAt.Add(time.Second)},
					Tokens:   []TokenEntry{{yamlAt, 3}, {yamlAt.Add(time.Second), 4}},
					DayStart: yamlAt.Truncate(24 * time.Hour),
					DayCount: 2,
				},
				"local": zero,
			},
		},
		"written.yaml": everySaved(),
	} {
		t.Run(file, func(t *testing.T) {
			got, err := readYAML(filepath.Join("testdata", "yaml", file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := diffSaved(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseYAMLOfNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "\r\n", "   \n", "# nothing\n", "---\n", "--- # nothing", "null", "{}", "--- {}\n", "\ufeff", "\ufeffquotas:\n", "quotas:\r\nstate:\r\n", "state: null", "{quotas: {}, state: {}}"} {
		got, err := parseYAML("limits.yaml", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := diffSaved(saved{}, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestParseYAMLMistakes(t *testing.T) {
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
		{"an unknown field", quota("max_rpmm: 5"), "3:5", `unknown field "max_rpmm": it must be one of max_rpm, max_tpm, max_rpd, max_input_tpm`},
		{"an unknown field on top", "quotas: {}\nquota: {}\n", "2:1", `unknown field "quota": it must be one of quotas, state`},
		{"an unknown field of usage", usage("day_counts: 5"), "6:5", `unknown field "day_counts"`},
		{"an unknown field of an entry", usage("day_count: 1\n    input_tokens:\n      - tme: 2026-02-20T14:32:01Z"), "8:9", `unknown field "tme": it must be one of time, count`},
		{"another case", quota("MAX_RPM: 5"), "3:5", `unknown field "MAX_RPM"`},
		{"a field twice", quota("max_tpm: 5"), "4:5", `field "max_tpm" stands here twice`},
		{"a field twice, once in quotes", quota(`"max_tpm": 5`), "4:5", `field "max_tpm" stands here twice`},
		{"quotas twice", "quotas: {}\nstate: {}\nquotas: {}\n", "3:1", `field "quotas" stands here twice`},
		{"a model twice", "quotas:\n  a:\n    max_rpm: 1\n  'a':\n    max_rpm: 2\n", "4:3", `model "a" stands here twice`},
		{"a model twice in its state", "state:\n  a: ~\n  b: ~\n  a: ~\n", "4:3", `model "a" stands here twice`},
		{"a model twice on a line", `quotas: {a: {}, "\x61": {}}`, "1:17", `model "a" stands here twice`},

		{"an empty name", "quotas:\n  \"\":\n    max_rpm: 1\n", "2:3", `model "": a name must have 1 to 512 bytes of UTF-8, and no control characters`},
		{"an empty name in single quotes", "state: {'': null}", "1:9", `model "": a name must have 1 to 512 bytes`},
		{"no name", "quotas:\n  : {}\n", "2:3", `":": it must be a key`},
		{"null for a name", "quotas:\n  null: {}\n", "2:3", `"null": it must be a key`},
		{"a long name", "quotas:\n  " + strings.Repeat("x", 513) + ": {}\n", "2:3", "a name must have 1 to 512 bytes"},
		{"a control character in a name", `quotas: {"a\nb": {}}`, "1:10", `model "a\nb": a name must have 1 to 512 bytes of UTF-8, and no control characters`},
		{"a list for a name", "quotas:\n  [a]: {}\n", "2:3", `"[": it must be a key`},

		{"text for a number", quota("max_rpm: fast"), "3:14", `max_rpm of "fast": ` + number},
		{"spaces after it", quota("max_rpm: fast   "), "3:14", `max_rpm of "fast"`},
		{"a comment after it", quota("max_rpm: fast  # or not"), "3:14", `max_rpm of "fast"`},
		{"a number in quotes", quota(`max_rpm: "5"`), "3:14", `max_rpm of "5": ` + number},
		{"a float", quota("max_rpm: 1.5"), "3:14", number},
		{"a whole float", quota("max_rpm: 5.0"), "3:14", number},
		{"an exponent", quota("max_rpm: 1e3"), "3:14", number},
		{"infinity", quota("max_rpm: .inf"), "3:14", number},
		{"a negative quota", quota("max_rpm: -1"), "3:14", `max_rpm of "-1": ` + number},
		{"a sign", quota("max_rpm: +1"), "3:14", number},
		{"hexadecimal", quota("max_rpm: 0x10"), "3:14", number},
		{"octal", quota("max_rpm: 010"), "3:14", number},
		{"underscores", quota("max_rpm: 1_000"), "3:14", number},
		{"a boolean", quota("max_rpm: true"), "3:14", number},
		{"two numbers", quota("max_rpm: 1 2"), "3:14", number},
		{"too large a quota", quota("max_rpm: 9007199254740993"), "3:14", number},
		{"more than 64 bits", quota("max_rpm: 99999999999999999999"), "3:14", number},
		{"no number", quota("max_rpm:"), "3:5", `"max_rpm" has no value: ` + number},
		{"no number at the end", "quotas:\n  gpt-4o:\n    max_rpm:", "3:5", `"max_rpm" has no value`},
		{"null for a number", quota("max_rpm: null"), "3:14", `"null": ` + number},
		{"a list for a number", quota("max_rpm: [5]"), "3:14", `"[": ` + number},
		{"a mapping for a number", quota("max_rpm:\n      a: 5"), "4:7", number},
		{"a negative count", usage("day_count: -3"), "6:16", `day_count of "-3": ` + count},
		{"a negative count of tokens", usage("day_count: 1\n    input_tokens:\n    - {time: 2026-02-20T14:32:01Z, count: -1}"), "8:43", `count of "-1": ` + count},
		{"too large a count", usage("day_count: 4611686018427387905"), "6:16", count},

		{"no time of day", quota("day_resets_at: midnight"), "3:20", `day_resets_at of "midnight": it must be a time of day and a time zone`},
		{"no such zone", quota("day_resets_at: 00:00 Mars/Olympus"), "3:20", `it must be a time of day and a time zone`},
		{"no such hour", quota(`day_resets_at: "25:00 UTC"`), "3:20", `it must be a time of day and a time zone`},
		{"a long time of day", quota("day_resets_at: 00:00" + strings.Repeat("\u3000", 170) + "UTC"), "3:20", "it must be a time of day and a time zone"},
		{"null for a time of day", quota("day_resets_at: ~"), "3:20", "it must be a time of day and a time zone"},

		{"no time", usage("day_count: 1\n    day_tokens: {time: soon, count: 1}"), "7:24", `"soon": ` + moment},
		{"a day for a time", usage("day_count: 1\n    day_tokens: {time: 2026-02-20, count: 1}"), "7:24", moment},
		{"a time with a space", usage("day_count: 1\n    day_tokens: {time: 2026-02-20 14:32:01Z, count: 1}"), "7:24", moment},
		{"a time without a zone", usage("day_count: 1\n    day_tokens: {time: '2026-02-20T14:32:01', count: 1}"), "7:24", moment},
		{"a time before the year 0", usage("day_count: 1\n    day_tokens: {time: '0000-01-01T00:00:00+01:00', count: 1}"), "7:24", moment},
		{"seconds for a time", usage("day_count: 1\n    day_tokens: {time: 1771597921, count: 1}"), "7:24", moment},
		{"no time in a list", "state:\n  a:\n    requests:\n      - 2026-02-20T14:32:01Z\n      -\n    tokens: []\n", "5:7", `"-" has no value: ` + moment},

		{"a list for the file", "- quotas\n", "1:1", `"-": it must be a key`},
		{"text for the file", "limits\n", "1:1", `"limits": it must be a key, with a colon and a space after it`},
		{"a number for the file", "5", "1:1", "it must be a key"},
		{"a list for quotas", "quotas:\n  - gpt-4o\n", "2:3", `"-": it must be a key`},
		{"a list right below quotas", "quotas:\n- gpt-4o\n", "2:1", `"-": it must be a key`},
		{"brackets for quotas", "quotas: []\n", "1:9", `"[": it must be a mapping`},
		{"text for quotas", "quotas: none\n", "1:9", `"none": it must be a mapping`},
		{"text for a quota", "quotas:\n  gpt-4o: none\n", "2:11", `"none": it must be a mapping`},
		{"no quota", "quotas:\n  gpt-4o:\n  local:\n    max_rpm: 1\n", "2:3", `"gpt-4o" has no value: it must be a mapping`},
		{"null for a quota", "quotas:\n  gpt-4o: null\n", "2:11", `"null": it must be a mapping`},
		{"a mapping for a list", "state:\n  a:\n    requests:\n      time: 2026-02-20T14:32:01Z\n", "4:7", `"time": it must be a list`},
		{"text for a list", "state:\n  a:\n    requests: none\n", "3:15", `"none": it must be a list`},
		{"a list in a list", "state:\n  a:\n    requests:\n      - - 2026-02-20T14:32:01Z\n", "4:9", `"-": ` + moment},
		{"a list on its key's line", "state:\n  a:\n    requests: - 2026-02-20T14:32:01Z\n", "3:15", `"-": it must be a list`},
		{"a mapping on its key's line", "quotas:\n  gpt-4o: max_rpm: 5\n", "2:11", `"max_rpm": it must be a mapping`},
		{"a mapping on the document's line", "--- quotas: {}\n", "1:5", `"quotas": it must be a mapping`},
		{"a time for an entry", usage("day_count: 1\n    input_tokens:\n      - 2026-02-20T14:32:01Z"), "8:9", "it must be a key"},

		{"no colon", "quotas\n", "1:1", "it must be a key, with a colon and a space after it"},
		{"no space after the colon", quota("max_rpm:5"), "3:5", `"max_rpm:5": it must be a key, with a colon and a space after it`},
		{"no space after the colon in braces", "quotas: {gpt-4o:{}}", "1:10", "it must be a key, with a colon and a space after it"},
		{"too far left", "quotas:\n    gpt-4o:\n        max_rpm: 1\n      max_tpm: 1\n", "4:7", `"max_tpm": it must be a key in column 9`},
		{"too far right", "quotas:\n    gpt-4o:\n        max_rpm: 1\n          max_tpm: 1\n", "4:11", `"max_tpm": it must be a key in column 9`},
		{"an indented key on top", "quotas: {}\n state: {}\n", "2:2", `"state": it must be a key in column 1`},
		{"a dash too far left", "state:\n  a:\n    requests:\n      - 2026-02-20T14:32:01Z\n     - 2026-02-20T14:32:01Z\n", "5:6", `"-": it must be a key in column 5`},
		{"something after a value", quota(`max_rpm: "5" 6`), "3:14", number},
		{"something after a list", "state:\n  a:\n    requests: [] 5\n", "3:18", `"5": it must be a key in column 5`},
		{"something after the file", "{}\nquotas:\n", "2:1", `"quotas": it must be the end of the file`},
		{"a tab for indentation", "quotas:\n\tgpt-4o: {}\n", "2:1", `a tab: it must be spaces`},
		{"a tab after spaces", "quotas:\n  gpt-4o:\n  \tmax_rpm: 5\n", "3:3", `a tab`},
		{"a tab in a name", "quotas:\n  \"gpt\t4o\": {}\n", "2:7", `a tab: it must be spaces`},

		{"an open quote", quota(`"max_rpm: 5`), "3:5", "could not find end character of double-quoted text"},
		{"an open single quote", quota(`'max_rpm: 5`), "3:5", "could not find end character of single-quoted text"},
		{"an open brace", "quotas: {gpt-4o: {max_rpm: 5}\nstate: {}\n", "1:9", `"{": it must be closed on its line`},
		{"an open brace at the end", "quotas: {", "1:9", `"{": it must be closed on its line`},
		{"an open bracket", "state:\n  a:\n    requests: [2026-02-20T14:32:01Z,\n      2026-02-20T14:32:02Z]\n", "3:15", `"[": it must be closed on its line`},
		{"a bracket for a brace", "quotas: {gpt-4o: {max_rpm: 5]}", "1:28", `max_rpm of "5]"`},
		{"no comma", `quotas: {"a": {} "b": {}}`, "1:18", `"b": it must be a comma, or the closing bracket`},
		{"two commas", "quotas: {a: {},, b: {}}", "1:16", `",": it must be a key`},
		{"a key without a value in braces", "quotas: {a, b: {}}", "1:10", "it must be a key"},
		{"an unknown escape", `quotas: {"\q": {}}`, "1:12", "found unknown escape character 'q'"},
		{"half an escape", `quotas: {"a": {}, "\uD83E": {}}`, "1:20", "found unexpected character after high surrogate"},
		{"an escape of no character", `quotas: {"a": {}, "\uDC00": {}}`, "1:19", `a \x, \u or \U that stands for no character`},
		{"an escape of no digits", `quotas: {"\xZZ": {}}`, "1:10", `a \x, \u or \U that stands for no character`},
		{"a short escape", `quotas: {"\U0001F6": {}}`, "1:10", "could not find end character of double-quoted text"},
		{"an escape past the last character", `quotas: {"\U00110000": {}}`, "1:10", `a \x, \u or \U that stands for no character`},
		{"a reserved character", "quotas:\n  @gpt: {}\n", "2:3", "'@' is a reserved character"},
		{"a long key without its colon", "quotas:\n  ? gpt-4o\n", "2:11", "the end of the file: it must be a colon below the question mark"},
		{"a long key with its colon too far right", "quotas:\n  ? gpt-4o\n   : {}\n", "3:4", `":": it must be a colon below the question mark`},
		{"a long key that is a mapping", "quotas:\n  ? gpt-4o: {}\n  : {}\n", "2:11", `it must be a colon below the question mark`},
		{"a long key that is a list", "quotas:\n  ? - gpt-4o\n  : {}\n", "2:5", `"-": it must be a key`},
		{"a long key that is missing", "quotas:\n  ? \n  : {}\n", "2:3", `it must be a key`},

		{"an anchor", "quotas: &all\n  gpt-4o: {}\n", "1:9", "an anchor or alias: it must be written out"},
		{"an alias", "quotas: *all\n", "1:9", "an anchor or alias"},
		{"an alias bomb", "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nquotas: *c\n", "1:1", `unknown field "a"`},
		{"a merge", "quotas:\n  a: {}\n  b:\n    <<: {max_rpm: 5}\n", "4:5", "an anchor or alias"},
		{"a tag", quota("max_rpm: !!int 5"), "3:14", "a tag: it must be left out"},
		{"a tag on a mapping", "quotas: !!map\n  gpt-4o: {}\n", "1:9", "a tag"},
		{"a tag on a name", "quotas:\n  !!binary /w==: {}\n", "2:3", "a tag"},
		{"literal text", quota("day_resets_at: |\n      00:00 UTC"), "3:20", "text of several lines: it must be a time of day and a time zone"},
		{"folded text", quota("day_resets_at: >-\n      00:00 UTC"), "3:20", "text of several lines"},
		{"literal text for a name", "quotas:\n  ? |-\n    gpt\n    4o\n  : {}\n", "2:5", "text of several lines: it must be a key"},
		{"plain text over lines", "quotas:\n  gpt\n  4o: {}\n", "2:3", "it must be a key"},
		{"a second document", "quotas: {}\n---\nquotas: {}\n", "2:1", "a second document: there must be one"},
		{"an empty second document", "quotas: {}\n---\n", "2:1", "a second document"},
		{"a document after an indented one", "  quotas: {}\n---\n", "2:1", "a second document"},
		{"a directive", "%YAML 1.2\n---\nquotas: {}\n", "1:1", `"%": it must be a key`},
		{"the end of a document", "quotas: {}\n...\n", "2:1", `"...": it must be a key`},

		{"deep brackets", "quotas: " + strings.Repeat("[", 4000), "1:9", `"[": it must be a mapping`},
		{"deep braces", "quotas: " + strings.Repeat("{a: ", 1000), "1:14", `unknown field "a"`},
		{"deep dashes", "state:\n  a:\n    requests:\n      " + strings.Repeat("- ", 2000), "4:9", `"-": ` + moment},
		{"deep keys", "a: \n b: \n  c: \n   d: \n", "1:1", `unknown field "a"`},
		{"a long line", "quotas: {}\n# " + strings.Repeat("x", 4095), "2:1", "a line of 4097 bytes: it must have 4096 at most"},

		{"a byte that is not UTF-8", "quotas:\n  modèle\xff: {}\n", "2:9", "byte 0xff is not UTF-8"},
		{"UTF-16", "\xff\xfeq\x00u\x00", "1:1", "byte 0xff is not UTF-8"},
		{"a database", "SQLite format 3\x00\x10\x00", "1:16", "U+0000: there must be no control characters"},
		{"holes", strings.Repeat("\x00", 512), "1:1", "U+0000: there must be no control characters"},
		{"a control character", "quotas:\n  \"\x1b[0m\": {}\n", "2:4", "U+001B"},
		{"a carriage return", "quotas: {}\rstate: {}\n", "1:11", "U+000D"},
		{"a line separator", "quotas:\n  'a\u2028b': {}\n", "2:5", `U+2028: it must be written \u2028, in quotes`},
		{"a byte order mark inside", "quotas: {}\n\ufeffstate: {}\n", "2:1", `U+FEFF: it must be written \uFEFF, in quotes`},

		{"no usage", "state:\n  a:\n", "2:3", `"a" has no value: it must be a mapping`},
		{"no requests", "state:\n  a:\n    tokens: []\n    day_start: 2026-02-20T14:32:01Z\n    day_count: 1\n", "2:3", `"a" lacks requests: the file may have been cut short`},
		{"no day_count", "state:\n  a: {requests: [], tokens: [], day_start: '2026-02-20T14:32:01Z'}\n", "2:3", `"a" lacks day_count`},
		{"an entry without a count", usage("day_count: 1\n    input_tokens:\n      - time: 2026-02-20T14:32:01Z"), "8:7", `"-" lacks count`},
		{"an entry without a time", usage("day_count: 1\n    day_tokens: {count: 1}"), "7:5", `"day_tokens" lacks time`},
	} {
		t.Run(c.mistake, func(t *testing.T) {
			got, err := parseYAML("limits.yaml", []byte(c.text))
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

// A file that a crash cut short is an error wherever it can be told.
func TestParseYAMLCutShort(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "yaml", "example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	inUsage := strings.Index(string(text), "requests:")
	whole := strings.LastIndex(string(text), "42")
	for cut := range len(text) {
		_, err := parseYAML("limits.yaml", text[:cut])
		if inUsage <= cut && cut <= whole && err == nil {
			t.Errorf("no error where the file ends after %q", text[:cut])
		}
	}
}

func TestReadYAMLFaults(t *testing.T) {
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
		{file, file + `:1:9: "5": it must be a mapping`},
		{dir, dir + ": it must be a file, and is d"},
		{filepath.Join(file, "below"), filepath.Join(file, "below")},
		{large, large + ": 1099511627776 bytes: it must have 67108864 at most"},
		{"a\x00b", "invalid"},
	} {
		got, err := readYAML(c.path)
		if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, it must say %q", c.path, err, c.says)
		}
		if got.Quotas != nil || got.State != nil {
			t.Errorf("%s: with the error comes %+v", c.path, got)
		}
	}
}

func TestWriteYAML(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "yaml", "written.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	parent := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(parent, "newer", "limits.yaml")
	if err := writeYAML(path, everySaved()); err != nil {
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

func TestWriteYAMLOfNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	if err := writeYAML(path, saved{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "quotas: {}\nstate: {}\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// The names of the fields stand in the types' tags and in the reader and writer.
func TestYAMLTags(t *testing.T) {
	text, err := formatYAML(everySaved())
	if err != nil {
		t.Fatal(err)
	}
	var got saved
	if err := yaml.UnmarshalWithOptions(text, &got, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if diff := diffSaved(everySaved(), got); diff != "" {
		t.Error(diff)
	}
}

func TestWriteYAMLReplaces(t *testing.T) {
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

func TestWriteYAMLRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	wantWritten(t, "limits.yaml")
	wantFiles(t, ".", "limits.yaml")
}

// A link stays one, and the file that it leads to is replaced, or made.
func TestWriteYAMLThroughLinks(t *testing.T) {
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
			if got, err := readYAML(filepath.Join(root, c.to)); err != nil || diffSaved(everySaved(), got) != "" {
				t.Errorf("%s holds %+v, %v", c.to, got, err)
			}
			wantModes(t, map[string]fs.FileMode{filepath.Join(root, c.to): 0o600})
			wantNoTemporaries(t, root)
		})
	}
}

func TestWriteYAMLFaults(t *testing.T) {
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
		{"no name", "new/", "rename", func(string) error { return nil }},
		{"too long a name", strings.Repeat("x", 1000), "rename", func(string) error { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			if err := c.make(root); err != nil {
				t.Fatal(err)
			}
			before := pathsBelow(t, root)
			err := writeYAML(root+"/"+c.path, everySaved())
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

// What could not be read again is not written.
func TestWriteYAMLRefuses(t *testing.T) {
	usage := func(u UsageStats) saved { return saved{State: map[string]UsageStats{"gpt-4o": u}} }
	quota := func(name string, q ModelQuota) saved { return saved{Quotas: map[string]ModelQuota{name: q}} }
	for _, c := range []struct {
		s    saved
		says string
	}{
		{quota("", ModelQuota{}), `model "": a name must have 1 to 512 bytes`},
		{quota("\xff", ModelQuota{}), `model "\xff": a name must have 1 to 512 bytes of UTF-8`},
		{quota("a\nb", ModelQuota{}), `model "a\nb": a name must have 1 to 512 bytes of UTF-8, and no control characters`},
		{quota("gpt-4o", ModelQuota{MaxRPM: -1}), `model "gpt-4o": max_rpm of -1: it must be from 1`},
		{quota("gpt-4o", ModelQuota{DayResetsAt: "noon"}), `model "gpt-4o": day_resets_at of "noon": it must be`},
		{quota("gpt-4o", ModelQuota{DayResetsAt: "00:00" + strings.Repeat(" ", 1015) + "UTC"}), "it must be a time of day and a time zone"},
		{saved{State: map[string]UsageStats{"": {}}}, `model "": a name must have 1 to 512 bytes`},
		{usage(UsageStats{DayCount: -1}), `model "gpt-4o": a count of -1: it must be from 0 to 4611686018427387904`},
		{usage(UsageStats{DayCount: math.MaxInt}), "a count of 9223372036854775807"},
		{usage(UsageStats{Tokens: []TokenEntry{{Count: -2}}}), "a count of -2"},
		{usage(UsageStats{InputTokens: []TokenEntry{{Count: -3}}}), "a count of -3"},
		{usage(UsageStats{OutputTokens: []TokenEntry{{Count: -4}}}), "a count of -4"},
		{usage(UsageStats{DayTokens: &TokenEntry{Count: -5}}), "a count of -5"},
		{usage(UsageStats{DayStart: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}), "a time in the year 10000: it must be from 0 to 9999"},
		{usage(UsageStats{Requests: []time.Time{time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)}}), "a time in the year -1"},
		{usage(UsageStats{Requests: make([]time.Time, 2_500_000)}), "it must have 67108864 at most"},
	} {
		t.Run(c.says, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "limits.yaml")
			wantWritten(t, path)
			err := writeYAML(path, c.s)
			if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: "+path+": ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, it must say %q", err, c.says)
			}
			if got, err := readYAML(path); err != nil || diffSaved(everySaved(), got) != "" {
				t.Errorf("the old file holds %+v, %v", got, err)
			}
			wantFiles(t, dir, "limits.yaml")
		})
	}
}

// Whoever reads while others write sees a whole file.
func TestWriteYAMLWhileRead(t *testing.T) {
	const writers, each = 4, 50
	dir := t.TempDir()
	path := filepath.Join(dir, "limits.yaml")
	if err := writeYAML(path, wholeSaved(1)); err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				if err := writeYAML(path, wholeSaved(1+w*each+i)); err != nil {
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

// wholeSaved has n models, each with a quota of n.
func wholeSaved(n int) saved {
	s := saved{Quotas: map[string]ModelQuota{}}
	for i := range n {
		s.Quotas[fmt.Sprint("model-", i)] = ModelQuota{MaxRPM: n}
	}
	return s
}

func wantWhole(t *testing.T, path string) {
	t.Helper()
	got, err := readYAML(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffSaved(wholeSaved(len(got.Quotas)), got); diff != "" || len(got.Quotas) == 0 {
		t.Fatalf("a torn file: %s", diff)
	}
}

func wantWritten(t *testing.T, path string) {
	t.Helper()
	if err := writeYAML(path, everySaved()); err != nil {
		t.Fatal(err)
	}
	got, err := readYAML(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffSaved(everySaved(), got); diff != "" {
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

func TestYAMLRoundTrip(t *testing.T) { rapid.Check(t, propertyYAMLRoundTrip) }

func propertyYAMLRoundTrip(t *rapid.T) {
	upTo := func(most int) *rapid.Generator[int] {
		return rapid.OneOf(rapid.IntRange(0, most), rapid.SampledFrom([]int{0, 1, most}))
	}
	count, most := upTo(maxCount), upTo(maxQuota)
	at := rapid.Custom(func(t *rapid.T) time.Time {
		first, last := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
		at := time.Unix(rapid.Int64Range(first, last).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
		return at.In(time.FixedZone("", rapid.IntRange(-14*3600, 14*3600).Draw(t, "zone")))
	})
	entry := rapid.Custom(func(t *rapid.T) TokenEntry { return TokenEntry{at.Draw(t, "time"), count.Draw(t, "count")} })
	entries := rapid.SliceOfN(entry, 0, 4)
	quota := rapid.Custom(func(t *rapid.T) ModelQuota {
		return ModelQuota{
			MaxRPM: most.Draw(t, "rpm"), MaxTPM: most.Draw(t, "tpm"), MaxRPD: most.Draw(t, "rpd"),
			MaxInputTPM: most.Draw(t, "input"), MaxOutputTPM: most.Draw(t, "output"), MaxTPD: most.Draw(t, "tpd"),
			MaxConcurrent: most.Draw(t, "concurrent"), DayResetsAt: rapid.SampledFrom([]string{"", "00:00 UTC", " 7:05\tEurope/Oslo\n"}).Draw(t, "day"),
		}
	})
	usage := rapid.Custom(func(t *rapid.T) UsageStats {
		return UsageStats{
			Requests: rapid.SliceOfN(at, 0, 4).Draw(t, "requests"), Tokens: entries.Draw(t, "tokens"),
			DayStart: at.Draw(t, "start"), DayCount: count.Draw(t, "count"),
			InputTokens: entries.Draw(t, "input"), OutputTokens: entries.Draw(t, "output"), DayTokens: rapid.Ptr(entry, true).Draw(t, "day"),
		}
	})
	s := saved{
		Quotas: rapid.MapOfN(yamlNames(), quota, 0, 4).Draw(t, "quotas"),
		State:  rapid.MapOfN(yamlNames(), usage, 0, 4).Draw(t, "state"),
	}
	text, err := formatYAML(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseYAML("limits.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := diffSaved(s, got); diff != "" {
		t.Fatal(diff)
	}
	if again, err := formatYAML(got); err != nil || string(again) != string(text) {
		t.Fatalf("written again, it is %q, %v", again, err)
	}
}

// yamlNames are names that YAML could take for something else.
func yamlNames() *rapid.Generator[string] {
	parts := rapid.SampledFrom([]string{
		"gpt", "4o", "-", ".", "/", ":", ": ", " #", "#", " ", "  ", "'", `"`, "\\", "?", "? ", "- ", "<<", "*", "&", "!", "!!str ", "|", ">", "%", "@", "`",
		"[", "]", "{", "}", ",", "null", "~", "true", "No", "1", "1.5", "0x1f", "1e3", ".inf", "2026-02-20", "---", "...", "é", "模", "🤖", "\u00a0", "\u00ad", "\u2028", "\ufeff", "\ufffd", "\uffff",
	})
	joined := rapid.Map(rapid.SliceOfN(parts, 1, 6), func(parts []string) string { return strings.Join(parts, "") })
	return rapid.OneOf(joined, rapid.StringN(1, 40, -1)).Filter(func(name string) bool { return checkName(name) == nil })
}

func FuzzParseYAML(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "yaml", "*.yaml"))
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
		s, err := parseYAML("limits.yaml", text)
		if err != nil {
			if s.Quotas != nil || s.State != nil || !strings.HasPrefix(err.Error(), "ratelimit: limits.yaml:") {
				t.Fatalf("%+v, %v", s, err)
			}
			return
		}
		written, err := formatYAML(s)
		if err != nil {
			t.Fatalf("%q is read and not written: %v", text, err)
		}
		again, err := parseYAML("limits.yaml", written)
		if err != nil {
			t.Fatalf("%q is written %q: %v", text, written, err)
		}
		if diff := diffSaved(s, again); diff != "" {
			t.Fatalf("%q is written %q: %s", text, written, diff)
		}
	})
}
