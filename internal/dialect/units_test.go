package dialect_test

import (
	"dappco.re/go/core/go-ratelimit/llm"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// init says what the streams of all files report beside tokens, after their own inits: of an answer whose usage is not
// exact, nobody knows how many searches and images there were.
func init() {
	for i := range meterStreams {
		s := &meterStreams[i]
		switch {
		case s.api == dialect.CohereRerank:
			s.want.Units[llm.SearchUnits] = 1
		case s.want.Exact:
		case s.api == dialect.Responses:
			s.want.Units[llm.WebSearches], s.want.Units[llm.FileSearches], s.want.Units[llm.Containers], s.want.Units[llm.Images] = -1, -1, -1, -1
		case s.api == dialect.Messages:
			s.want.Units[llm.WebSearches], s.want.Units[llm.Containers] = -1, -1
		case s.api == dialect.Interactions:
			s.want.Units[llm.WebSearches] = -1
		case s.api == dialect.Generate:
			s.want.Units[llm.WebSearches], s.want.Units[llm.Images] = -1, -1
		}
	}
}
