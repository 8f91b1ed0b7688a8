package dialect

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// What a prompt costs beside its texts, in tokens.
const (
	tokensPerMessage = 4 // the role, and the marks around the message
	tokensPerReply   = 3 // the marks with which the answer begins
	tokensPerTool    = 8 // what the provider writes around the definition of a tool
)

// bytesPerToken is the length of a token of text: about four bytes in English, and a little more
// than one character of a script with three bytes a character.
const bytesPerToken = 4

// A promptCost is what a prompt, or a field of it, costs.
type promptCost struct {
	texts    int // tokens of texts, from their bytes
	messages int
	prompts  int // how many prompts a list of prompts has
	other    int // tokens of everything but text
}

// structure returns the tokens of everything but text.
func (t promptCost) structure() int {
	if t.messages == 0 {
		return t.other
	}
	return t.other + t.messages*tokensPerMessage + tokensPerReply
}

// A promptReader reads the prompt in a body.
type promptReader struct {
	cursor
	endpoint    Endpoint
	protocol    *protocol
	dialect     *dialect
	promptCost                    // the cost of the field that is being read
	promptBound                   // of all fields that were read
	each        func(text string) // receives the texts; may be nil
}

// prompt reads a field of the prompt.
func (p *promptReader) prompt(f *field) {
	first, from := p.next(), p.at
	p.template = p.template || f.name == p.protocol.storedIn && first == '{'
	p.elsewhere = p.elsewhere || f.name == p.protocol.storedIn
	switch {
	case f.kind == fieldTools:
		p.tools()
	case f.kind == fieldAll:
		p.more += boundForSchema
		p.all()
		p.elsewhere = p.elsewhere || f.storedIf != "" && bytes.Contains(p.body[from:p.at], []byte(f.storedIf))
	case first == '[' && (f.kind == fieldMessages || f.kind == fieldPrompts):
		p.list()
	case f.kind == fieldImages:
		p.value(keyImage, 0)
	default:
		if p.isMessage(f) && (first == '"' || first == '{' || first == '[') {
			p.messages++
		}
		p.value(keyText, 0)
	}
}

// isMessage reports whether a field that holds no list of messages is itself one message.
func (p *promptReader) isMessage(f *field) bool {
	return f.kind == fieldMessage || f.kind == fieldMessages || f.name == p.protocol.messageIn
}

// list reads a list of messages, of prompts or of tokens.
func (p *promptReader) list() {
	p.at++
	for first := true; p.item(first, ']'); first = false {
		switch p.next() {
		case '{':
			p.messages++
		case '"', '[':
			p.prompts++
		}
		p.element(keyText, 0)
	}
}

// tools reads the definitions of tools. The provider writes all of them into the prompt.
func (p *promptReader) tools() {
	c := p.next()
	if c != '[' && c != '{' { // Google takes a list of one without its brackets
		p.skip()
		return
	}
	define := func(first bool) {
		if first {
			p.other += p.protocol.toolUse
			p.more += boundForTools
		}
		p.other += tokensPerTool
		p.tool()
	}
	if c == '{' {
		define(true)
		return
	}
	p.at++
	for first := true; p.item(first, ']'); first = false {
		define(first)
	}
}

// tool reads the definition of a tool.
func (p *promptReader) tool() {
	if p.next() != '{' {
		p.all()
		return
	}
	p.at++
	var kind, model string
	var uses []byte
	containers := int64(-1) // what it runs in costs; -1: it does not say
	draws := false          // it generates images
	searches := false       // it searches vector stores
	var stores []string
	for first := true; p.item(first, '}'); first = false {
		key := p.key()
		p.leaf(quoted{raw: key})
		p.next()
		from := p.at
		p.all()
		switch {
		case string(key) == "type":
			p.addTool(kind, nil, largestContainer) // of two types, servers may use either
			kind = textOf(p.body[from:p.at])
			draws = draws || strings.HasPrefix(kind, imageTool)
			searches = searches || strings.HasPrefix(kind, fileTool)
			p.boundToolType(kind)
		case string(key) == "max_uses":
			before, _ := whole(uses)
			if n, ok := whole(p.body[from:p.at]); !ok || n >= before {
				uses = p.body[from:p.at]
			}
		case string(key) == "model":
			named := textOf(p.body[from:p.at])
			if named == "null" {
				named = usualDrawing
			}
			model = eitherModel(model, named)
		case bytes.EqualFold(key, storesKey): // some servers ignore case
			stores = append(stores, storesIn(p.body[from:p.at])...)
		case string(key) == "container", string(key) == "environment":
			containers = max(containers, containersFor(string(key), p.body[from:p.at]))
		case p.protocol.toolMembers != nil && !slices.Contains(p.protocol.toolMembers, string(key)):
			p.elsewhere = true
			p.addTool(string(key), nil, 1)
		}
	}
	if containers < 0 {
		containers = 1
	}
	p.addTool(kind, uses, containers)
	if draws {
		p.imageModel = eitherModel(p.imageModel, cmp.Or(model, usualDrawing))
	}
	if searches {
		p.stores = append(p.stores, stores...)
	}
}

// addTool adds a tool that the provider may run: see [llm.Units].
func (p *promptReader) addTool(kind string, uses []byte, containers int64) {
	before := p.toolUses[llm.WebSearches]
	addTool(&p.toolUses, kind, uses, containers)
	if p.toolUses[llm.WebSearches] > before {
		isMap := strings.EqualFold(strings.ReplaceAll(kind, "_", ""), "googleMaps")
		p.maps, p.web = p.maps || isMap, p.web || !isMap
	}
}

// textOf returns the text of a value that is a string, and otherwise the value.
func textOf(value []byte) string {
	if len(value) == 0 || value[0] != '"' {
		return string(value)
	}
	c := cursor{body: value}
	return c.str().String()
}

// all reads a value in which every key, string and number counts as text.
func (p *promptReader) all() {
	p.walk(p.leaf)
}

// leaf counts a key, string or scalar as text.
func (p *promptReader) leaf(t quoted) {
	p.boundLeaf(t)
	p.countText(t, keyText)
}

// A keyKind says how the value under a key counts in a prompt.
type keyKind int

const (
	keyText      keyKind = iota // texts, and objects and lists of them
	keyLabel                    // not shown to the model, such as a role
	keyDetail                   // how closely the model looks at an image
	keyFree                     // arguments and results of tools: everything in them is text
	keySource                   // the source of an image or a file
	keyReference                // a link to an image or a file
	keyImage                    // an image, or a link to one
	keyPayload                  // the data of an image or a file, if the objects around say that it is one
	keyType                     // what an object is
	keyMime                     // what a file is
	keyEncrypted                // what the provider itself has written, for nobody else to read
	keyStored                   // what the provider has stored
	keyAddress                  // a reference if it is inside a source or a reference, or else text
)

// promptKeys says how values count under the keys that the dialects have. Under any other key they are texts.
var promptKeys = map[string]keyKind{}

func keyKindOf(key []byte) keyKind {
	switch string(key) { // nearly all keys are one of these
	case "content", "text", "parts", "name":
		return keyText
	case "role":
		return keyLabel
	case "type":
		return keyType
	}
	return promptKeys[string(key)]
}

// maxDepth is how deep the reader reads objects and lists. Deeper values count as text.
const maxDepth = 32

// value reads a value of the prompt. media is the cost of the image or file that the value itself
// is, or 0.
func (p *promptReader) value(in keyKind, depth int) (media int) {
	switch p.next() {
	case '"':
		if t := p.str(); p.err == nil {
			p.boundString(t, in)
			return p.countText(t, in)
		}
	case '{':
		if depth == maxDepth {
			p.all()
		} else {
			p.object(in, depth+1)
		}
	case '[':
		if depth == maxDepth {
			p.all()
			break
		}
		p.at++
		for first := true; p.item(first, ']'); first = false {
			p.element(in, depth+1)
		}
	default:
		p.skip()
	}
	return 0
}

// element reads an element of a list. A number is a token.
func (p *promptReader) element(in keyKind, depth int) {
	if b := p.next(); b == '-' || '0' <= b && b <= '9' {
		p.other++
	}
	p.value(in, depth)
}

// object reads an object that stands under a key of the kind in.
func (p *promptReader) object(in keyKind, depth int) {
	p.at++
	media, low := 0, false
	files, fileBytes := p.files, p.fileBytes
	kind, mime, encrypted := labelNone, labelNone, false
	for first := true; p.item(first, '}'); first = false {
		at := keyKindOf(p.key())
		if at >= keySource {
			at = at.inside(in)
		}
		switch at {
		case keyLabel:
			p.skip()
		case keyType:
			kind = p.boundType(kind)
		case keyMime:
			mime = p.boundMime(mime)
		case keyDetail:
			low = p.name() == "low"
		case keyFree:
			if b := p.next(); b == '{' || b == '[' || b == '"' {
				p.all()
			} else {
				p.value(keyText, depth)
			}
		case keyStored, keyEncrypted:
			encrypted = at == keyEncrypted && p.next() == '"'
			p.elsewhere = p.elsewhere || at == keyStored && p.next() == '{' // such as {"id": "audio_1"}
			p.value(keyText, depth)
		default:
			media += p.value(at, depth)
		}
	}
	if p.files > files {
		p.boundFiles(kind, mime, files, fileBytes)
	}
	if kind == labelReasoning && !encrypted {
		p.elsewhere = true
	}
	if low && media > 0 {
		if cost := p.endpoint.imageRules().low; cost > 0 {
			p.other += cost - media
		}
	}
}

// inside returns how a key counts in an object that stands under a key of the kind in.
func (at keyKind) inside(in keyKind) keyKind {
	switch {
	case at == keyAddress && (in == keySource || in == keyReference):
		return keyReference
	case in == keyImage && (at == keySource || at == keyAddress || at == keyPayload || at == keyReference):
		return keyImage
	case at == keyAddress:
		return keyText
	}
	return at
}

// countText adds the cost of a string: of a text, or of the image or file that it encodes or links
// to. It returns the cost of the latter, or 0.
func (p *promptReader) countText(t quoted, in keyKind) (media int) {
	media = p.endpoint.media(t)
	if media == 0 && (in == keyReference || in == keyImage) {
		media = p.endpoint.imageRules().unknown
	}
	if media > 0 {
		p.other += media
		return media
	}
	p.texts += (t.size() + bytesPerToken - 1) / bytesPerToken
	if p.each != nil {
		p.each(t.String())
	}
	return 0
}
