package ratelimit

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// A yamlReader reads mappings, lists and scalars off the tokens of a file. It
// scans a line when it comes to it.
type yamlReader struct {
	name   string // for errors
	rest   string // lines to come
	line   int    // how many came
	width  int    // of the last that came, in characters
	tokens token.Tokens
}

// endType is the type of what comes after the last token.
const endType = token.UnknownType

// peek returns the next token without taking it. What cannot be scanned is a
// token of its own type, which fits nowhere and so ends up as an error.
func (r *yamlReader) peek() *token.Token {
	for len(r.tokens) == 0 {
		if r.rest == "" {
			return r.token(endType, r.width+1, "")
		}
		var line string
		line, r.rest, _ = strings.Cut(r.rest, "\n")
		line = strings.TrimSuffix(line, "\r")
		r.line++
		r.width = utf8.RuneCountInString(line)
		r.tokens = r.scan(line)
	}
	return r.tokens[0]
}

func (r *yamlReader) next() *token.Token {
	t := r.peek()
	if t.Type != endType {
		r.tokens = r.tokens[1:]
	}
	return t
}

func (r *yamlReader) token(kind token.Type, column int, fault string) *token.Token {
	return &token.Token{Type: kind, Error: fault, Position: &token.Position{Line: r.line, Column: column}}
}

// maxLine bounds what the scanner spends on a line, which can grow with the
// square of its length.
const maxLine = 4096

// scan returns the tokens of a line, but for comments.
func (r *yamlReader) scan(line string) token.Tokens {
	if len(line) > maxLine {
		return token.Tokens{r.token(token.InvalidType, 1, fmt.Sprintf("a line of %d bytes: it must have %d at most", len(line), maxLine))}
	}
	column := 0
	for i, c := range line {
		column++
		if fault := faultOf(line[i:], c); fault != "" {
			return token.Tokens{r.token(token.InvalidType, column, fault)}
		}
	}
	var s scanner.Scanner
	s.Init(strings.TrimRight(line, " ") + "\n")
	scanned, _ := s.Scan() // an error is the last token
	var tokens token.Tokens
	for _, t := range scanned {
		t.Position.Line = r.line
		switch {
		case t.Type == token.CommentType:
			continue
		case t.Type == token.DoubleQuoteType && !escapesWell(line, t.Position.Column):
			t = r.token(token.InvalidType, t.Position.Column, `a \x, \u or \U that stands for no character`)
		}
		tokens = append(tokens, t)
	}
	return tokens
}

// faultOf says what is wrong with the character that line starts with, if
// anything is.
func faultOf(line string, c rune) string {
	switch {
	case c == utf8.RuneError && !strings.HasPrefix(line, "\ufffd"):
		return fmt.Sprintf("byte %#x is not UTF-8", line[0])
	case c == '\t':
		return "a tab: it must be spaces"
	case unicode.IsControl(c):
		return fmt.Sprintf("%U: there must be no control characters", c)
	case strings.ContainsRune("\u2028\u2029\ufeff\ufffe\uffff", c):
		return fmt.Sprintf(`%U: it must be written \u%04X, in quotes`, c, c)
	}
	return ""
}

// escapesWell reports whether all \x, \u and \U stand for a character in the
// quoted text that starts at the column of the line. The scanner takes any.
func escapesWell(line string, column int) bool {
	quoted := []rune(line)[column:]
	for i := 0; i < len(quoted) && quoted[i] != '"'; i++ {
		if quoted[i] != '\\' {
			continue
		}
		i++
		digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[quoted[i]]
		if digits == 0 {
			continue
		}
		if i+digits >= len(quoted) {
			return false
		}
		n, err := strconv.ParseUint(string(quoted[i+1:i+1+digits]), 16, 31)
		if err != nil || !utf8.ValidRune(rune(n)) {
			return false
		}
	}
	return true
}

// A yamlPlace is where a value may stand: below its key, or to the right of it.
type yamlPlace struct {
	key    *token.Token // or the dash of an item; nil for the whole file
	column int          // the value stands to the right of it
	line   int          // the value starts no block on it
	flow   bool         // the value stands on line, between brackets
}

// holds reports whether the token belongs to the value. What cannot be scanned
// does everywhere, so that it is the error.
func (in yamlPlace) holds(t *token.Token) bool {
	switch {
	case t.Type == token.InvalidType:
		return true
	case in.flow:
		return t.Position.Line == in.line && t.Type != endType
	}
	return columnOf(t) > in.column
}

// opens reports whether a block of lines starts with the token.
func (in yamlPlace) opens(t *token.Token) bool {
	return !in.flow && columnOf(t) > in.column && t.Position.Line != in.line
}

// columnOf is 0 at the end, which is to the right of nothing.
func columnOf(t *token.Token) int {
	if t.Type == endType {
		return 0
	}
	return t.Position.Column
}

// null reports whether there is no value, and takes the null that says so.
func (r *yamlReader) null(in yamlPlace) bool {
	t := r.peek()
	if !in.holds(t) {
		return true
	}
	if t.Type != token.NullType || !in.flow && len(r.tokens) > 1 { // what follows would make it a key
		return false
	}
	r.next()
	return true
}

// scalar takes a value that is neither null nor a mapping nor a list.
func (r *yamlReader) scalar(in yamlPlace, want string) (*token.Token, error) {
	t := r.peek()
	if !in.holds(t) {
		return nil, r.missing(in, want)
	}
	if !isScalar(t) {
		return nil, r.unexpected(t, want)
	}
	return r.next(), nil
}

func isScalar(t *token.Token) bool {
	switch t.Type {
	case token.StringType, token.SingleQuoteType, token.DoubleQuoteType,
		token.IntegerType, token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType,
		token.FloatType, token.InfinityType, token.NanType, token.BoolType:
		return true
	}
	return false
}

// mapping calls value for each key, with the place of its value.
func (r *yamlReader) mapping(in yamlPlace, value func(yamlPlace) error) error {
	first := r.peek()
	if !in.holds(first) {
		return r.missing(in, "a mapping")
	}
	if first.Type == token.MappingStartType {
		return r.flow(token.MappingEndType, func(in yamlPlace) error {
			in.key = r.peek()
			if err := r.key(in.key); err != nil {
				return err
			}
			return value(in)
		})
	}
	if !in.opens(first) {
		return r.unexpected(first, "a mapping")
	}
	for t := first; columnOf(t) > in.column; t = r.peek() {
		if columnOf(t) != columnOf(first) {
			return r.unexpected(t, fmt.Sprintf("a key in column %d", columnOf(first)))
		}
		at, err := r.blockKey(t)
		if err != nil {
			return err
		}
		if err := value(at); err != nil {
			return err
		}
	}
	return nil
}

// blockKey takes a key, which starts with the token t, and its colon.
func (r *yamlReader) blockKey(t *token.Token) (yamlPlace, error) {
	if t.Type != token.MappingKeyType {
		return yamlPlace{key: t, column: columnOf(t), line: t.Position.Line}, r.key(t)
	}
	// A long key has a line of its own: ? key, and : value below.
	r.next()
	key, err := r.scalar(yamlPlace{key: t, line: t.Position.Line, flow: true}, "a key")
	if err != nil {
		return yamlPlace{}, err
	}
	colon := r.next()
	if colon.Type != token.MappingValueType || columnOf(colon) != columnOf(t) {
		return yamlPlace{}, r.unexpected(colon, "a colon below the question mark")
	}
	return yamlPlace{key: key, column: columnOf(t)}, nil
}

// key takes the key t and its colon.
func (r *yamlReader) key(t *token.Token) error {
	if !isScalar(t) {
		return r.unexpected(t, "a key")
	}
	r.next()
	colon := r.next()
	apart := t.Indicator == token.QuotedScalarIndicator || !r.touches(colon)
	if colon.Type != token.MappingValueType || colon.Position.Line != t.Position.Line || !apart {
		return r.errorf(t, "%q: it must be a key, with a colon and a space after it", t.Value)
	}
	return nil
}

// touches reports whether the next token stands right behind t.
func (r *yamlReader) touches(t *token.Token) bool {
	next := r.peek()
	return next.Position.Line == t.Position.Line && columnOf(next) == columnOf(t)+1
}

// readList reads a list, item by item.
func readList[T any](r *yamlReader, in yamlPlace, read func(yamlPlace) (T, error)) (list []T, err error) {
	item := func(in yamlPlace) error {
		value, err := read(in)
		list = append(list, value)
		return err
	}
	first := r.peek()
	dashed := first.Type == token.SequenceEntryType && !in.flow && first.Position.Line != in.line
	if dashed && columnOf(first) >= in.column { // dashes may stand right below the key
		for t := first; t.Type == token.SequenceEntryType && columnOf(t) == columnOf(first); t = r.peek() {
			r.next()
			if err := item(yamlPlace{key: t, column: columnOf(t)}); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	if r.null(in) {
		return nil, nil
	}
	if first.Type != token.SequenceStartType {
		return nil, r.unexpected(first, "a list")
	}
	err = r.flow(token.SequenceEndType, item)
	return list, err
}

// flow calls item for each item between the brackets that come next.
func (r *yamlReader) flow(end token.Type, item func(yamlPlace) error) error {
	open := r.next()
	in := yamlPlace{key: open, line: open.Position.Line, flow: true}
	for {
		t := r.peek()
		if !in.holds(t) {
			return r.errorf(open, "%q: it must be closed on its line", open.Value)
		}
		if t.Type == end {
			r.next()
			return nil
		}
		if err := item(in); err != nil {
			return err
		}
		switch t := r.peek(); {
		case t.Type == token.CollectEntryType:
			r.next()
		case t.Type != end && in.holds(t):
			return r.unexpected(t, "a comma, or the closing bracket")
		}
	}
}

func (r *yamlReader) missing(in yamlPlace, want string) error {
	return r.errorf(in.key, "%q has no value: it must be %s", in.key.Value, want)
}

func (r *yamlReader) unexpected(t *token.Token, want string) error {
	switch t.Type {
	case token.InvalidType:
		return r.errorf(t, "%s", t.Error)
	case token.AnchorType, token.AliasType, token.MergeKeyType:
		return r.errorf(t, "an anchor or alias: it must be written out")
	case token.TagType:
		return r.errorf(t, "a tag: it must be left out")
	case token.LiteralType, token.FoldedType:
		return r.errorf(t, "text of several lines: it must be %s", want)
	case token.DocumentHeaderType:
		return r.errorf(t, "a second document: there must be one")
	case endType:
		return r.errorf(t, "the end of the file: it must be %s", want)
	}
	return r.errorf(t, "%q: it must be %s", t.Value, want)
}

func (r *yamlReader) errorf(t *token.Token, format string, args ...any) error {
	return fmt.Errorf("ratelimit: %s:%d:%d: "+format, append([]any{r.name, t.Position.Line, t.Position.Column}, args...)...)
}
