package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// provider and model are those of the file that package price reads.
type provider struct {
	ID     string   `json:"id"`
	Also   []string `json:"also,omitempty"`
	Models []model  `json:"models"`
}

type model struct {
	ID    string   `json:"id"`
	Match []string `json:"match,omitempty"`
	Not   []string `json:"not,omitempty"`
	llm.Maxima
	Price *price.Price `json:"price"`
}

// order is the providers that the table has. A model without a provider is looked for in this order:
// companies that make models come before those that only serve them.
var order = []string{
	"openai", "anthropic", "google", "mistral", "cohere", "deepseek", "x-ai", "moonshotai", "minimax", "zai", "zhipuai",
	"perplexity", "voyageai", "arcee", "aws", "azure", "groq", "cerebras", "fireworks", "together", "novita", "baseten",
	"cloudflare", "ovhcloud", "openrouter",
}

// source is a provider of the data set.
type source struct {
	ID     string   `json:"id"`
	Also   []string `json:"fallback_model_providers"`
	Models []struct {
		ID     string          `json:"id"`
		Window json.Number     `json:"context_window"` // may be written 2e5
		Match  match           `json:"match"`
		Prices json.RawMessage `json:"prices"` // one, or a list of dated ones
	} `json:"models"`
}

func convert(data any) ([]provider, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	var sources []source
	if err := json.Unmarshal(text, &sources); err != nil {
		return nil, err
	}
	var all []provider
	for _, id := range order {
		i := slices.IndexFunc(sources, func(s source) bool { return s.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("there is no provider %s", id)
		}
		p, err := sources[i].convert()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func (s *source) convert() (provider, error) {
	p := provider{ID: s.ID, Also: s.Also}
	for _, m := range s.Models {
		terms, err := termsOf(m.Prices)
		if err == nil && terms == nil {
			continue // nothing says what it costs
		}
		made := model{ID: strings.ToLower(m.ID)}
		if m.Window != "" && err == nil {
			var window price.Amount
			window, err = dollars(m.Window)
			made.Context = int(window / price.Dollar)
		}
		if err == nil {
			complete(s.ID, made.ID, terms)
			made.Price, err = price.New(terms...)
		}
		if err == nil {
			err = m.Match.collect(&made)
		}
		if err != nil {
			return p, fmt.Errorf("%s: %w", m.ID, err)
		}
		made.Match = slices.DeleteFunc(made.Match, func(name string) bool { return name == made.ID })
		p.Models = append(p.Models, made)
	}
	return p, nil
}

// match is a rule of the data set for the names of a model. One of its fields is set.
type match struct {
	Equals   string  `json:"equals"`
	Starts   string  `json:"starts_with"`
	Ends     string  `json:"ends_with"`
	Contains string  `json:"contains"`
	Regex    string  `json:"regex"`
	Or       []match `json:"or"`
	And      []match `json:"and"`
}

// notSpeech is the regular expression by which the data set excludes models that speak.
const notSpeech = `^(?!.*-[tT][tT][sS](?:$|-))`

// collect adds the patterns of a rule to a model. In a pattern, * stands for any characters and #
// for a digit.
func (r match) collect(m *model) error {
	for _, either := range slices.Concat(r.Or, r.And) { // the data set has no And but for exclusions
		if err := either.collect(m); err != nil {
			return err
		}
	}
	if len(r.And) > 0 && !slices.ContainsFunc(r.And, func(r match) bool { return r.Regex == notSpeech }) {
		return fmt.Errorf("an unknown rule with and: %+v", r.And)
	}
	add := func(text, pattern string) {
		if text != "" {
			m.Match = append(m.Match, strings.ToLower(fmt.Sprintf(pattern, text)))
		}
	}
	add(r.Equals, "%s")
	add(r.Starts, "%s*")
	add(r.Ends, "*%s")
	add(r.Contains, "*%s*")
	if r.Regex == notSpeech {
		m.Not = append(m.Not, "*-tts", "*-tts-*")
		return nil
	}
	pattern, err := patternOf(r.Regex)
	add(pattern, "%s")
	return err
}

var (
	digits  = regexp.MustCompile(`\\d(?:\{(\d)\})?`)
	special = regexp.MustCompile(`[\\^$()\[\]{}?+|*]`)
)

// patternOf returns the pattern of a regular expression of digits, dots and brackets.
func patternOf(expression string) (string, error) {
	if expression == "" {
		return "", nil
	}
	text, begins := strings.CutPrefix(expression, "^")
	text, ends := strings.CutSuffix(text, "$")
	text = digits.ReplaceAllStringFunc(text, func(found string) string {
		if len(found) == len(`\d{8}`) {
			return strings.Repeat("#", int(found[3]-'0'))
		}
		return "#"
	})
	plain := strings.NewReplacer(`\.`, ".", `\[`, "", `\]`, "").Replace(text)
	if !begins || special.MatchString(plain) {
		return "", fmt.Errorf("an unknown regular expression: %s", expression)
	}
	text = strings.NewReplacer(`\.`, ".", `\[`, "[", `\]`, "]").Replace(text)
	if !ends {
		text += "*"
	}
	return text, nil
}

// dollars reads a number, without the noise of binary fractions, and rounded up to a billionth.
func dollars(n json.Number) (price.Amount, error) {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return 0, fmt.Errorf("%s is no number", n)
	}
	r.SetString(r.FloatString(12))
	r.Mul(r, big.NewRat(price.Dollar, 1))
	whole, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if !whole.IsInt64() || whole.Sign() < 0 {
		return 0, fmt.Errorf("%s is no price", n)
	}
	return price.Amount(whole.Int64()), nil
}
