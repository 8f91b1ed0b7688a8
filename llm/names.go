package llm

import "strings"

// naming is the table of rules by which a provider's names of one model are found to be
// the same.
var naming = map[Provider]struct {
	// same undoes what makes no difference: the provider takes both names for one model.
	same []nameRule
	// variant undoes what makes a name one of a release or a variant, which shares the
	// limits of its model unless the configuration names it.
	variant []nameRule
}{
	OpenAI:    {nil, []nameRule{date("-0000"), without("-latest")}}, // gpt-4-0613, chatgpt-4o-latest
	Azure:     {[]nameRule{strings.ToLower}, nil},
	Anthropic: {[]nameRule{claude}, []nameRule{without("-latest"), without("-0")}},
	Gemini:    {[]nameRule{after("models/")}, []nameRule{without("-latest"), date("-000"), date("-00-00"), date("-00-0000")}},
	Vertex: {
		[]nameRule{after("publishers/"), after("google/"), after("anthropic/"), after("models/"), claude},
		[]nameRule{upTo("@"), without("-latest"), date("-000"), date("-00-00"), date("-00-0000"), without("-0")},
	},
	Mistral: {nil, []nameRule{without("-latest"), date("-0000")}}, // mistral-large-2411
	Cohere:  {nil, []nameRule{date("-00-0000")}},                  // command-r-08-2024
	Bedrock: {
		[]nameRule{bareARN, claude},
		[]nameRule{unversioned, date("-v0"), after("us."), after("us-gov."), after("eu."), after("apac."), after("jp."), after("au."), after("ca."), after("global.")},
	},
	OpenRouter: {[]nameRule{strings.ToLower, claude}, []nameRule{upTo(":"), upTo("@")}}, // openai/gpt-4o@preset/team
	Ollama: {
		[]nameRule{strings.ToLower, after("http://"), after("https://"), after("registry.ollama.ai/"), after("library/"), upTo("@"), without(":latest")},
		nil,
	},
}

// A nameRule returns the name without what it undoes, or the name itself.
type nameRule func(name string) string

// PlainName returns the one of a model's names by which limits know it, where its
// provider takes several for the same model: Gemini's with and without models/, Ollama's
// in any case, of its registry or its library, and with the tag latest, Azure's
// deployments and OpenRouter's models in any case, and Anthropic's with the generation
// before or behind the family, with dots or dashes, and Bedrock's by their ARNs.
func PlainName(p Provider, model string) string { return settle(model, naming[p].same) }

// BaseName returns the plain name of the model of which a name is a release or a variant,
// or the name of the model itself: gpt-4o of gpt-4o-2024-08-06, claude-haiku-3-5 of
// claude-3-5-haiku-latest, OpenRouter's x of x:nitro.
func BaseName(p Provider, model string) string {
	rules := naming[p]
	for {
		name := settle(Undated(settle(model, rules.same)), rules.variant)
		if name == model {
			return name
		}
		model = name
	}
}

// settle applies rules until none of them changes the name. Each rule makes it shorter,
// or makes no difference when it is applied again.
func settle(name string, rules []nameRule) string {
	for i := 0; i < len(rules); i++ {
		if changed := rules[i](name); changed != name && changed != "" {
			name, i = changed, -1
		}
	}
	return name
}

// after undoes a beginning.
func after(prefix string) nameRule {
	return func(name string) string { return strings.TrimPrefix(name, prefix) }
}

// unversioned undoes the version of one of Bedrock's models, such as :0 or :0:24k. The
// ARNs of applications' profiles have colons of their own.
func unversioned(name string) string {
	if strings.HasPrefix(name, "arn:") {
		return name
	}
	return upTo(":")(name)
}

// without undoes an end.
func without(suffix string) nameRule {
	return func(name string) string { return strings.TrimSuffix(name, suffix) }
}

// upTo undoes a sign and all behind it.
func upTo(sign string) nameRule {
	return func(name string) string {
		name, _, _ = strings.Cut(name, sign)
		return name
	}
}

// date undoes an end that has digits where a pattern has zeros.
func date(pattern string) nameRule {
	return func(name string) string {
		if at := len(name) - len(pattern); at > 0 && isLike(name[at:], pattern) {
			return name[:at]
		}
		return name
	}
}

var dates = []nameRule{date("-0000-00-00"), date("-00000000")}

// Undated returns the name of the model of which a name with a date at its end is one
// release, as OpenAI and Anthropic write them: gpt-4o of gpt-4o-2024-08-06,
// claude-sonnet-4 of claude-sonnet-4-20250514. Others stay as they are.
func Undated(model string) string {
	for _, undo := range dates {
		if name := undo(model); name != model {
			return name
		}
	}
	return model
}

// isLike reports whether a text has digits where a pattern has, and is the same
// otherwise.
func isLike(text, pattern string) bool {
	for i := range len(pattern) {
		digit := text[i] >= '0' && text[i] <= '9'
		if pattern[i] == '0' && !digit || pattern[i] != '0' && text[i] != pattern[i] {
			return false
		}
	}
	return true
}

// claude writes one of Anthropic's names as the newer ones are written: the family, and
// then the generation, with dashes. It makes claude-haiku-3-5 of claude-3.5-haiku.
func claude(name string) string {
	const maker = "claude-"
	at := strings.Index(name, maker)
	if at < 0 {
		return name
	}
	at += len(maker)
	rest := name[at:]
	generation := generationOf(rest)
	family := strings.TrimPrefix(rest[len(generation):], "-")
	letters := len(family) - len(strings.TrimLeft(family, "abcdefghijklmnopqrstuvwxyz"))
	if generation != "" && letters > 0 {
		rest = family[:letters] + "-" + generation + family[letters:]
	}
	if dotted := strings.ReplaceAll(rest, ".", "-"); dotted != name[at:] {
		return name[:at] + dotted
	}
	return name
}

// generationOf returns the numbers of one or two digits that a text begins with, such as
// 3-5 or 3.5. A date has more digits.
func generationOf(text string) string {
	end := 0
	for i := 0; i <= len(text); {
		digits := 0
		for i+digits < len(text) && text[i+digits] >= '0' && text[i+digits] <= '9' {
			digits++
		}
		if digits == 0 || digits > 2 {
			break
		}
		end = i + digits
		if end == len(text) || text[end] != '-' && text[end] != '.' {
			break
		}
		i = end + 1
	}
	return text[:end]
}
