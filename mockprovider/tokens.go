package mockprovider

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostTokens is how many tokens an answer has at most.
const mostTokens = 1 << 20

// Count returns how many tokens a text has. A token is up to four letters or digits,
// with the space before them, or any other character.
func Count(text string) int { return len(split(text)) }

// split returns the tokens of a text, which are the text if they are joined.
func split(text string) (tokens []string) {
	for text != "" {
		n := tokenEnd(text)
		tokens, text = append(tokens, text[:n]), text[n:]
	}
	return tokens
}

// tokenEnd returns where the first token of a text ends.
func tokenEnd(text string) int {
	end := 0
	if text[0] == ' ' && len(text) > 1 {
		end = 1
	}
	for letters := 0; letters < 4 && end < len(text); letters++ {
		r, size := utf8.DecodeRuneInString(text[end:])
		word := unicode.IsLetter(r) || unicode.IsDigit(r)
		if !word && letters > 0 {
			break
		}
		end += size
		if !word {
			break
		}
	}
	return end
}

var words = strings.Fields("the sea was calm and the wind had gone so we lay on deck and saw the moon rise")

// say returns n tokens of text.
func say(n int) []string {
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = " " + words[i%len(words)]
	}
	if n > 0 {
		tokens[0] = words[0]
	}
	return tokens
}

// countIn returns how many tokens a value of JSON has: those of its texts, and one
// for each number.
func countIn(value any) (n int) {
	switch v := value.(type) {
	case string:
		n = Count(v)
	case float64:
		n = 1
	case []any:
		for _, each := range v {
			n += countIn(each)
		}
	case map[string]any:
		for _, each := range v {
			n += countIn(each)
		}
	}
	return n
}
