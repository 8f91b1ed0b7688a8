package tokenizers

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// A chat is a prompt at random: messages, and sometimes definitions of tools.
type chat struct {
	roles []string
	texts []string // as JSON
	tools string   // as JSON; empty: there are none
}

func newChat(random *rand.Rand) *chat {
	c := &chat{}
	for range 1 + random.IntN(16) {
		c.roles = append(c.roles, []string{"user", "assistant", "system"}[random.IntN(3)])
		c.texts = append(c.texts, quote(random, newText(random)))
	}
	if random.IntN(8) == 0 {
		var tools []string
		for range 1 + random.IntN(4) {
			tools = append(tools, fmt.Sprintf(`{"type":"function","function":{"name":"f%d","description":%s,"parameters":%s}}`,
				random.IntN(100), quote(random, newText(random)), newSchema(random, 0)))
		}
		c.tools = "[" + strings.Join(tools, ",") + "]"
	}
	return c
}

func (c *chat) body() string {
	var messages []string
	for i, text := range c.texts {
		messages = append(messages, fmt.Sprintf(`{"role":"%s","content":%s}`, c.roles[i], text))
	}
	body := `{"messages":[` + strings.Join(messages, ",") + `]`
	if c.tools != "" {
		body += `,"tools":` + c.tools
	}
	return body + "}"
}

// newSchema returns a JSON schema.
func newSchema(random *rand.Rand, depth int) string {
	switch kind := random.IntN(6); {
	case kind == 0:
		var values []string
		for range 1 + random.IntN(30) {
			values = append(values, fmt.Sprint(random.IntN(10)))
		}
		return `{"enum":[` + strings.Join(values, ",") + `]}`
	case kind == 1 && depth < 6:
		return `{"type":"array","items":` + newSchema(random, depth+1) + `}`
	case kind < 4 && depth < 6:
		var fields []string
		for i := range random.IntN(5) {
			fields = append(fields, fmt.Sprintf(`"%c":%s`, 'a'+i, newSchema(random, depth+1)))
		}
		return `{"type":"object","properties":{` + strings.Join(fields, ",") + `}}`
	case kind == 4:
		return `{"type":"string","description":` + quote(random, newText(random)) + `}`
	}
	return `{"type":"integer"}`
}

// quote writes a text as JSON: as it is, or with escapes for everything but ASCII.
func quote(random *rand.Rand, text string) string {
	if random.IntN(4) > 0 {
		text, _ := json.Marshal(text)
		return string(text)
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r >= 0x20 && r < 0x7f && r != '"' && r != '\\':
			b.WriteRune(r)
		case r < 1<<16:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-1<<16)>>10, 0xdc00+(r-1<<16)&0x3ff)
		}
	}
	if random.IntN(8) == 0 { // half of a pair
		fmt.Fprintf(&b, `\ud8%02x`, random.IntN(256))
	}
	b.WriteByte('"')
	return b.String()
}

// scripts are the first and the last letters of twelve scripts.
var scripts = [][2]rune{
	{'a', 'z'}, {0xc0, 0x17f}, {0x370, 0x3ff}, {0x400, 0x4ff}, {0x5d0, 0x5ea}, {0x600, 0x6ff}, {0x900, 0x97f}, {0xe00, 0xe5b},
	{0x10a0, 0x10ff}, {0x3041, 0x30ff}, {0x4e00, 0x9fff}, {0xac00, 0xd7a3},
}

// odd are characters that tokenizers treat in ways of their own.
var odd = []rune("\u200d\u200b\u200e\u2060\ufeff\u00ad\u0301\u0327\u20e3\ufe0f\ufffd\ufdfa\ufdfb\u3316\u337f\u00bd\u2057\u0f77\U0001d160\u0958\u212b\u1e9e\u0130")

var words = []string{" the", "func main() {", "\n\n", "\t\t", "return", "<|endoftext|>", "</s>", "[INST]", "<|im_start|>", "\\n", "  ", "\r\n", "://", "->", "===", "0x", "'re", "ing"}

// newText returns a text: mostly of one kind, and sometimes of all of them.
func newText(random *rand.Rand) string {
	var b strings.Builder
	kind, length := random.IntN(14), random.IntN(40)
	if random.IntN(50) == 0 {
		length *= 20
	}
	for b.Len() < length {
		if random.IntN(20) == 0 {
			kind = random.IntN(14)
		}
		addPiece(&b, random, kind)
	}
	return b.String()
}

func addPiece(b *strings.Builder, random *rand.Rand, kind int) {
	switch kind {
	case 0, 1, 2: // a word of a script
		script := scripts[random.IntN(len(scripts))]
		for range 1 + random.IntN(8) {
			b.WriteRune(script[0] + rune(random.IntN(int(script[1]-script[0])+1)))
		}
		b.WriteByte(' ')
	case 3:
		fmt.Fprint(b, random.Uint64())
	case 4:
		fmt.Fprint(b, random.IntN(10))
	case 5:
		b.WriteString(base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(random.Uint64()))))
	case 6:
		b.WriteString(words[random.IntN(len(words))])
	case 7: // emoji, and those that a joiner makes one
		b.WriteRune(0x1f300 + rune(random.IntN(0x500)))
		b.WriteString([]string{"", "\u200d", "\ufe0f", "\U0001f3fd"}[random.IntN(4)])
	case 8: // a control character
		b.WriteRune(rune(1 + random.IntN(31)))
	case 9:
		b.WriteString(strings.Repeat([]string{" ", "\n", "\t", "\u00a0", "\u3000", "\u2028"}[random.IntN(6)], 1+random.IntN(20)))
	case 10:
		b.WriteRune(odd[random.IntN(len(odd))])
	case 11: // any character
		if r := rune(random.IntN(utf8.MaxRune)); utf8.ValidRune(r) && r > 0 {
			b.WriteRune(r)
		}
	case 12: // any character that most fonts have
		if r := rune(1 + random.IntN(0xffff)); utf8.ValidRune(r) {
			b.WriteRune(r)
		}
	case 13:
		b.WriteByte(byte(' ' + random.IntN(0x5f)))
	}
}
