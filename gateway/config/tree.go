package config

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// What a file may have. The parser takes time that grows with the square of the number
// of entries, and a stack that grows with the depth.
const (
	maxFile   = 1 << 20 // bytes
	maxTokens = 100_000
	maxDepth  = 16 // of brackets, or of dashes on a line
)

// tree parses a file. It is nil if the file says nothing, or if there are faults.
func (r *reader) tree(text []byte) ast.Node {
	if r.refuseText(text); len(r.faults) > 0 {
		return nil
	}
	tokens, err := lex(text)
	if err != nil {
		r.at("").fault("%s", err)
		return nil
	}
	if r.refuseTokens(tokens); len(r.faults) > 0 {
		return nil
	}
	file, err := parse(tokens)
	if err != nil {
		line, column, problem := faultOf(err)
		place{r: r, line: line, column: column}.fault("%s", problem)
		return nil
	}
	if len(file.Docs) == 0 {
		return nil
	}
	return file.Docs[0].Body // there is no other: see refuseTokens
}

func (r *reader) refuseText(text []byte) {
	if len(text) > maxFile {
		r.at("").fault("the file is larger than %d bytes, which is the most that is allowed", maxFile)
		return
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		if !utf8.Valid(line) {
			place{r: r, line: i + 1, column: 1}.fault("the line is not UTF-8, which it must be")
		}
	}
}

// refused is what no configuration needs, and what could make little text mean much.
var refused = map[token.Type]string{
	token.AnchorType:      "an anchor: it must be left out; a text with & needs quotes",
	token.AliasType:       "an alias: it must be written out; a name with * needs quotes",
	token.MergeKeyType:    "<<: it must be written out",
	token.TagType:         "a tag: it must be left out; a text with ! needs quotes",
	token.MappingKeyType:  "a question mark: a key must stand on its line, with a colon after it",
	token.DirectiveType:   "a directive: it must be left out; a text with % needs quotes",
	token.DocumentEndType: "the end of a document: it must be left out",
}

func (r *reader) refuseTokens(tokens token.Tokens) {
	if len(tokens) > maxTokens {
		r.at("").fault("the file has %d keys, values and signs: at most %d are allowed", len(tokens), maxTokens)
		return
	}
	tokens = slices.DeleteFunc(slices.Clone(tokens), func(t *token.Token) bool { return t.Type == token.CommentType })
	for i, t := range tokens {
		at := place{r: r, line: t.Position.Line, column: t.Position.Column}
		if why := refused[t.Type]; why != "" {
			at.fault("%s", why)
		} else if t.Type == token.InvalidType {
			at.fault("%s", invalid(t))
		} else if t.Type == token.DocumentHeaderType && i > 0 {
			at.fault("a second document: there must be one")
		}
	}
	if t := tooDeep(tokens); t != nil {
		place{r: r, line: t.Position.Line, column: t.Position.Column}.fault("brackets or dashes within %d others: that is the most that is allowed", maxDepth)
	}
}

// invalid says what is wrong with a token that is none.
func invalid(t *token.Token) string {
	if strings.Contains(t.Error, "'\t'") || strings.Contains(t.Error, "tab character") {
		return "a tab: lines must be indented with spaces"
	}
	return notYAML + ": " + t.Error
}

// tooDeep returns the token that opens one bracket, or one list on its line, too many.
func tooDeep(tokens token.Tokens) *token.Token {
	brackets, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			dashes, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets--
		case token.SequenceEntryType:
			dashes++
		}
		if brackets > maxDepth || dashes > maxDepth {
			return t
		}
	}
	return nil
}

func lex(text []byte) (tokens token.Tokens, err error) {
	defer rescue(&err)
	return lexer.Tokenize(string(bytes.TrimPrefix(text, []byte("\ufeff")))), nil
}

// rescue makes an error of a panic, since the library has had its share of these.
func rescue(err *error) {
	if recover() != nil {
		*err = errors.New(notYAML)
	}
}

const notYAML = "it cannot be read as YAML"

func parse(tokens token.Tokens) (file *ast.File, err error) {
	defer rescue(&err)
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// faultOf returns what is wrong with a file that cannot be parsed, and where.
func faultOf(err error) (line, column int, problem string) {
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) {
		return 1, 1, err.Error()
	}
	at := syntax.Token.Position
	return at.Line, at.Column, notYAML + ": " + syntax.Message
}
