package strictyaml

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

func (n node) isText() bool { return n.kind == plain || n.kind == quoted }

// scalar reads a text and returns the index of its node. value is set if the text is a value between
// braces.
func (p *parser) scalar(value bool) int {
	start := p.pos
	switch c := p.text[start]; {
	case c == '"' || c == '\'':
		p.quoted(c)
		return p.add(quoted, start, p.pos)
	case c == '@' || c == '`':
		p.broken(start, fmt.Sprintf("%q is a reserved character", c))
	case strings.IndexByte("#&!|>[]{", c) >= 0 || p.inFlow() && c == ',' || p.pairs > 0 && c == '}',
		p.isSign('-') || p.isLong() || p.endsKey(value):
		p.misplaced()
	case c == '*':
		p.refuse(start, "an alias: it must be written out; a name with * needs quotes")
	case c == '%' && p.text[p.line] != ' ':
		p.refuse(start, "a directive: it must be left out; a text with %% needs quotes")
	}
	end := p.plain(value)
	switch p.text[start:end] {
	case "null", "Null", "NULL", "~":
		return p.add(null, start, end)
	}
	return p.add(plain, start, end)
}

// endsKey reports whether the next byte is the colon after a key. Between braces, no blank is needed
// after that colon. So a text with a colon needs quotes there, unless it is a value.
func (p *parser) endsKey(value bool) bool {
	return p.isSign(':') || p.text[p.pos] == ':' && p.pairs > 0 && !value && p.text[p.pos+1] != '/'
}

// plain reads a text without quotes and returns the index after its last byte.
func (p *parser) plain(value bool) (end int) {
	for end = p.pos; p.pos < len(p.text); p.pos++ {
		ends := false
		switch c := p.text[p.pos]; c {
		case ' ', '\t':
			continue
		case '\n', '\r':
			ends = true
		case '#':
			ends = p.isBlank(p.pos - 1)
		case ':':
			ends = p.endsKey(value)
		case ',', '[', '{':
			ends = p.inFlow()
		case ']':
			ends = p.lists > 0
		case '}':
			ends = p.pairs > 0
		}
		if ends {
			break
		}
		end = p.pos + 1
	}
	return end
}

// quoted reads a text in quotes.
func (p *parser) quoted(quote byte) {
	start := p.pos
	for p.pos++; p.pos < len(p.text) && !isBreak(p.text[p.pos]); p.pos++ {
		switch c := p.text[p.pos]; {
		case c == '\'' && quote == c && strings.HasPrefix(p.text[p.pos:], "''"):
			p.pos++
		case c == quote:
			p.pos++
			return
		case c == '\\' && quote == '"':
			_, size := unescape(p.text[p.pos:], !p.form.Generated)
			if size == 0 {
				p.broken(p.pos, "found an escape that stands for no character")
			}
			p.pos += size - 1
		}
	}
	style := map[byte]string{'"': "double", '\'': "single"}[quote]
	p.broken(start, "could not find end character of "+style+"-quoted text")
}

// textOf returns the text of node i, without quotes and with its escapes replaced.
func (d *Document) textOf(i int) string {
	n := d.nodes[i]
	text := d.text[n.start:n.end]
	if n.kind != quoted {
		return text
	}
	quote, text := text[0], text[1:len(text)-1]
	if quote == '\'' {
		return strings.ReplaceAll(text, "''", "'")
	}
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	var b strings.Builder
	for text != "" {
		c, size := utf8.DecodeRuneInString(text)
		if c == '\\' {
			c, size = unescape(text, true)
		}
		b.WriteRune(c)
		text = text[size:]
	}
	return b.String()
}

// Each letter in escapes stands for the character at the same index in escaped.
const escapes = "0abtnvfre\"/\\N_LP \t"

var escaped = []rune("\x00\a\b\t\n\v\f\r\x1b\"/\\\u0085\u00a0\u2028\u2029 \t")

// unescape returns the character of the escape that a text begins with, and the number of bytes of the
// escape, or 0 if it stands for no character. If pairs is set, two escapes may be the halves of a
// character in UTF-16, as in JSON.
func unescape(text string, pairs bool) (c rune, size int) {
	if len(text) > 1 {
		if i := strings.IndexByte(escapes, text[1]); i >= 0 {
			return escaped[i], 2
		}
		size = map[byte]int{'x': 4, 'u': 6, 'U': 10}[text[1]]
	}
	if c = hex(text, size); pairs && utf16.IsSurrogate(c) && size == 6 {
		if c, size = utf16.DecodeRune(c, hex(text[6:], 6)), 12; c == utf8.RuneError {
			return 0, 0
		}
	}
	if !utf8.ValidRune(c) {
		return 0, 0
	}
	return c, size
}

// hex returns the character whose number follows a backslash and a letter, or -1 if there is none.
func hex(text string, size int) rune {
	if size == 0 || len(text) < size || text[0] != '\\' {
		return -1
	}
	n, err := strconv.ParseUint(text[2:size], 16, 31)
	if err != nil {
		return -1
	}
	return rune(n)
}
