package dialect

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// What a prompt can have beside the bytes of its body, in tokens.
const (
	boundForTools     = 1024 // a provider's own instructions for tools, which are 530 at most
	boundForSchema    = 256  // a provider's own instructions for the form of answers
	boundForKnownTool = 2048 // a tool that a provider itself defines, such as an editor or a computer
	boundForLeaf      = 4    // spaces, line breaks and commas around a value of a definition that a provider writes anew
)

// A promptBound is what is needed to bound the tokens of a prompt, beside the length of its body: text has at most one
// token a byte, and the marks around a message have fewer than its JSON has.
type promptBound struct {
	leaves    int  // how many keys, strings and scalars a provider may write anew
	more      int  // tokens beyond the bytes of the body; below 0 where bytes are no tokens, such as those of images
	wide      bool // the body is more than ASCII
	images    int
	elsewhere bool // a part of the prompt is not in the body, or is a file, so that the context window alone bounds it

	toolUses llm.Units // the most uses of the tools that the provider runs
	maps     bool      // one of them searches maps
	web      bool      // one of them searches the web
	template bool      // the provider has stored a prompt of the request, and with it tools that the body does not have

	imageModel string   // that generates images as a tool
	stores     []string // vector stores that a tool searches; "" stands for those whose names are not read

	// Files of which it is not known yet whether they are images, and the length of their strings. The objects around a
	// file say so, in front of it or behind it.
	files, fileBytes int
}

// boundString bounds a string that stands under a key of the kind in.
func (p *promptReader) boundString(t quoted, in keyKind) {
	switch in {
	case keyImage:
		p.images++
		p.more -= len(t.raw)
	case keyReference, keyPayload:
		p.files++
		p.fileBytes += len(t.raw)
	default:
		p.more -= t.spare // the model sees the text without escapes
	}
}

// boundLeaf bounds a key, string or scalar that a provider may write anew, with other spaces and escapes.
func (p *promptReader) boundLeaf(t quoted) {
	p.leaves++
	if p.wide {
		p.more += 2 * highBytes(t.raw) // é becomes \u00e9
	}
}

// A label is what the type or the MIME type of an object says of the files in it.
type label uint8

const (
	labelNone label = iota
	labelText
	labelImage
	labelSource    // where a file comes from: its MIME type says what it is
	labelReasoning // what a model has thought before, which the provider has stored unless it comes encrypted
	labelOther
)

// boundType reads the type of an object of the prompt. Types that are not known may stand for what the provider has
// stored, as two types of one object may.
func (p *promptReader) boundType(was label) label {
	if p.next() != '"' {
		p.skip()
		return was
	}
	now := labelOther
	switch t := p.str(); string(t.raw) {
	case "image", "input_image", "image_url":
		now = labelImage
	case "text", "redacted_thinking":
		now = labelText
	case "base64", "url":
		now = labelSource
	case "reasoning":
		now = labelReasoning
	default:
		p.elsewhere = p.elsewhere || !wholeTypes[string(t.raw)]
	}
	p.elsewhere = p.elsewhere || was != labelNone && was != now
	return now
}

// boundMime reads the MIME type of a file. Of two that differ nobody knows which one counts.
func (p *promptReader) boundMime(was label) label {
	now := labelOther
	if p.next() != '"' {
		p.skip()
	} else if t := p.str(); bytes.HasPrefix(t.raw, []byte("image/")) && (was == labelNone || was == labelImage) {
		now = labelImage
	}
	return now
}

// wholeTypes are the types of messages, parts and files of a prompt that the body has in full.
var wholeTypes = map[string]bool{"": true}

// boundFiles decides what the files are that an object has, before which there were so many others, by the object's
// labels. Files that the labels do not decide on are left to the objects around.
func (p *promptReader) boundFiles(kind, mime label, files, fileBytes int) {
	switch {
	case kind == labelImage || mime == labelImage && (kind == labelNone || kind == labelSource):
		p.images += p.files - files
		p.more -= p.fileBytes - fileBytes
	case kind == labelText: // the bytes count as they are
	default:
		return
	}
	p.files, p.fileBytes = files, fileBytes
}

// boundToolType bounds a tool by its type. A tool that the provider itself runs feeds its results back to the model.
func (p *promptReader) boundToolType(name string) {
	switch {
	case name == "" || name == "function" || name == "custom":
	case slices.ContainsFunc(knownTools, func(known string) bool { return isKnownTool(name, known) }):
		p.more += boundForKnownTool
	default:
		p.elsewhere = true
	}
}

// knownTools are how the types of tools begin that providers define and clients run.
var knownTools []string

// isKnownTool reports whether the type of a tool is a version of a known one, such as bash_20250124.
func isKnownTool(name, known string) bool {
	rest, ok := strings.CutPrefix(name, known)
	return ok && (rest == "" || rest[0] == '_')
}

// mostPrompt returns the most tokens of the prompt, but for its images.
func (r *requestReader) mostPrompt() int {
	most := len(r.body) + r.more + r.expanded + boundForLeaf*r.leaves + cmp.Or(r.protocol.overhead, r.dialect.overhead)
	if name := r.protocol.repeatedIn; name != "" {
		most += r.spent[fields[name].cost].texts * bytesPerToken * (r.leaves + len(r.body)/256)
	}
	return most
}

// isStored reports whether a field's value, which was read from an index on, names something that the provider has stored
// or fetches. It is so unless it is null, false or empty.
func (r *requestReader) isStored(from int) bool {
	switch value := string(bytes.Trim(r.body[from:r.at], " \t\r\n")); value {
	case "", "null", "false", "[]", "{}", `""`:
		return false
	}
	return true
}
