package mockprovider

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxTokens is the most tokens of an answer.
const maxTokens = 1 << 20

// Count returns how many tokens a text has. A token is up to four letters or digits, with the space
// before them, or any other character.
func Count(text string) int { return len(split(text)) }

// split cuts a text into its tokens.
func split(text string) (tokens []string) {
	for text != "" {
		n := tokenEnd(text)
		tokens, text = append(tokens, text[:n]), text[n:]
	}
	return tokens
}

// tokenEnd returns the length of the first token of a text.
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

// tokensOf returns n tokens with the same text, or words if it is empty.
func tokensOf(text string, n int) []string {
	if text == "" {
		return wordsOf(n)
	}
	return slices.Repeat([]string{text}, n)
}

// wordsOf returns n tokens of text.
func wordsOf(n int) []string {
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = " " + words[i%len(words)]
	}
	if n > 0 {
		tokens[0] = words[0]
	}
	return tokens
}

// countIn returns how many tokens a JSON value has: those of its texts, and one for each number.
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
