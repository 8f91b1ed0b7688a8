package project

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

// tricky is ids that keys, paths and headers have trouble with.
var tricky = []string{
	"a", "A", "a/b", "a%2Fb", "a%2fb", "a%252Fb", "a/requests", "a/tokens", "a/b/c/d/e/f/g/h", "...", ".a", "a..", "a/b.", "%", "%%", "%2F",
	"a*", "**", "?", "[a]", "{a}", "a{b}c", ":", "a:b", "~", "!", "\\", `"`, "'", "`", "<", "&", "#", ";", ",", "+", "=", "@", "$", "|", "^",
	"project/a", "project/a/requests", "quota/m", strings.Repeat("a", 128), strings.Repeat("%", 128), strings.Repeat("a", 126) + "/a",
}

// badIDs is what is none, and what the error says of it.
var badIDs = map[string]string{
	"":                          "the project id is empty: it must have 1 to 128 visible ASCII characters",
	strings.Repeat("a", 129):    "the project id has 129 bytes: it may have 128",
	strings.Repeat("a", 1<<20):  "the project id has 1048576 bytes: it may have 128",
	strings.Repeat("\xff", 1e6): "the project id has 1000000 bytes: it may have 128",
	"a/":                        "has an empty name",
	"/a":                        "has an empty name",
	"/":                         "has an empty name",
	"a//b":                      "has an empty name",
	"a/b/c/d/e/f/g/h/i":         "has 9 names: it may have 8",
	".":                         `has the name "."`,
	"..":                        `has the name ".."`,
	"../a":                      `has the name ".."`,
	"a/./b":                     `has the name "."`,
	"a/..":                      `has the name ".."`,
	"*":                         "has the name *",
	"a/*":                       "has the name *",
	"a/*/c":                     "has the name *",
	" ":                         `the project id " " has ' ' at 0`,
	"a b":                       `has ' ' at 1`,
	"a ":                        `has ' ' at 1`,
	"a\tb":                      `has '\t' at 1`,
	"a\nb":                      `has '\n' at 1`,
	"a\r\nX: y":                 `has '\r' at 1`,
	"\x00":                      `has '\x00' at 0`,
	"a\x1b[2J":                  `has '\x1b' at 1`,
	"a\x7f":                     `has '\x7f' at 1`,
	"a\x80":                     `only visible ASCII characters are allowed, and no spaces`,
	"\xff\xfe":                  `only visible ASCII characters are allowed, and no spaces`,
	"caf\u00e9":                 `has 'é' at 3`,
	"\u202egnp":                 `has '\u202e' at 0`,
	"\U0001f600":                `has '😀' at 0`,
	"a\u00a0b":                  `only visible ASCII characters are allowed, and no spaces`,
	"\uff0fa\uff0f":             `only visible ASCII characters are allowed, and no spaces`,
}

func TestCheckID(t *testing.T) {
	for _, id := range tricky {
		if err := CheckID(id); err != nil {
			t.Errorf("%.200q: %v", id, err)
		}
	}
	for id, says := range badIDs {
		err := CheckID(id)
		if !errors.Is(err, ErrInvalid) || !strings.HasPrefix(err.Error(), "ratelimit: invalid call: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%.200q: %v; want %s", id, err, says)
		}
		if err != nil && (len(err.Error()) > 1000 || strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) })) {
			t.Errorf("%.200q: not fit to be shown: %.2000q", id, err)
		}
	}
}

func TestKeysAreApart(t *testing.T) {
	of := map[string]string{}
	for _, id := range tricky {
		for _, key := range []string{string(appendKey(nil, id)), keyOf(id) + "tokens"} {
			if other, taken := of[key]; taken {
				t.Errorf("%q and %q have the key %q", id, other, key)
			}
			of[key] = id
		}
	}
	for _, id := range tricky {
		for key, owner := range of {
			if strings.HasPrefix(key, keyOf(id)) && owner != id {
				t.Errorf("a reset of %q forgets %q of %q", id, key, owner)
			}
		}
	}
}

// An id is valid if it is 1 to 128 bytes of visible ASCII, in up to 8 names. Then its key is the one
// that calls with tokens use, and the key shows which it is.
func FuzzID(f *testing.F) {
	for _, id := range tricky {
		f.Add(id, id+"/")
	}
	for id := range badIDs {
		if len(id) < 1000 {
			f.Add(id, "a")
		}
	}
	f.Fuzz(func(t *testing.T, id, other string) {
		visible := len(id) >= 1 && len(id) <= 128
		for _, b := range []byte(id) {
			visible = visible && b >= '!' && b <= '~'
		}
		names := strings.Split(id, "/")
		for _, name := range names {
			visible = visible && name != "" && name != "*" && name != "." && name != ".." && len(names) <= 8
		}
		err := CheckID(id)
		if (err == nil) != visible || err != nil && !errors.Is(err, ErrInvalid) {
			t.Fatalf("%q: %v; want it valid: %t", id, err, visible)
		}
		if err != nil {
			return
		}
		key := string(appendKey([]byte("before "), id))
		if key != "before "+keyOf(id)+"requests" {
			t.Errorf("the key of %q is %q", id, key)
		}
		if CheckID(other) != nil || other == id {
			return
		}
		prefix := keyOf(id)
		if strings.HasPrefix(keyOf(other), prefix) || strings.HasPrefix(prefix, keyOf(other)) {
			t.Errorf("%q and %q have keys in common", id, other)
		}
	})
}
