package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// parseFirst reads the first list or object of a JavaScript file, which begins with a sign, and nothing but literals:
// lists, objects with or without quotes around their keys, texts, numbers, and true and false, which may be written !0
// and !1. Nothing is run.
func parseFirst(text, sign string) (any, error) {
	start := strings.Index(text, sign)
	if start < 0 {
		return nil, fmt.Errorf("there is no %s in the file", sign)
	}
	l := &literal{text: text, at: start}
	v := l.value()
	return v, l.err
}

// literal is a position in a text. After an error it is at the end of the text.
type literal struct {
	text string
	at   int
	err  error
}

func (l *literal) fail(want string) any {
	if l.err == nil {
		l.err = fmt.Errorf("at byte %d: want %s, and there is %.20q", l.at, want, l.text[l.at:])
	}
	l.at = len(l.text)
	return nil
}

// next returns the next character that is no space, or 0 at the end.
func (l *literal) next() byte {
	for l.at < len(l.text) {
		if c := l.text[l.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		l.at++
	}
	return 0
}

// skip passes a character if it is the next one.
func (l *literal) skip(c byte) bool {
	if l.next() != c {
		return false
	}
	l.at++
	return true
}

func (l *literal) value() any {
	switch c := l.next(); {
	case c == '[':
		return l.list()
	case c == '{':
		return l.object()
	case c == '"' || c == '\'' || c == '`':
		return l.quoted()
	case c == '!' || c == 't' || c == 'f':
		return l.flag()
	case strings.IndexByte("-.0123456789", c) >= 0 && c != 0:
		number := l.word("+-.eE0123456789")
		if c == '.' {
			number = "0" + number // as JSON has it
		}
		return json.Number(number)
	}
	return l.fail("a value")
}

func (l *literal) list() any {
	all := []any{}
	l.at++
	for !l.skip(']') {
		all = append(all, l.value())
		if !l.skip(',') && l.next() != ']' {
			return l.fail("a comma or the end of a list")
		}
	}
	return all
}

func (l *literal) object() any {
	all := map[string]any{}
	l.at++
	for !l.skip('}') {
		key := ""
		if l.next() == '"' {
			key, _ = l.quoted().(string)
		} else if key = l.word("_$abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"); key == "" {
			return l.fail("a key")
		}
		if !l.skip(':') {
			return l.fail("a colon")
		}
		all[key] = l.value()
		if !l.skip(',') && l.next() != '}' {
			return l.fail("a comma or the end of an object")
		}
	}
	return all
}

func (l *literal) flag() any {
	switch l.word("!01truefals") {
	case "!0", "true":
		return true
	case "!1", "false":
		return false
	}
	return l.fail("true or false")
}

// quoted reads a text. In double quotes, its escapes are those of JSON; in other quotes, which only
// descriptions have, they stay as they are.
func (l *literal) quoted() any {
	quote, end := l.text[l.at], l.at+1
	for end < len(l.text) && l.text[end] != quote {
		if l.text[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(l.text) {
		return l.fail("the end of a text")
	}
	text := l.text[l.at+1 : end]
	if quote == '"' && json.Unmarshal([]byte(l.text[l.at:end+1]), &text) != nil {
		return l.fail("a text")
	}
	l.at = end + 1
	return text
}

// word reads characters of a set.
func (l *literal) word(set string) string {
	rest := l.text[l.at:]
	found := rest[:len(rest)-len(strings.TrimLeft(rest, set))]
	l.at += len(found)
	return found
}
