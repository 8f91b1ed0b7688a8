package llm

import "strings"

// naming has the rules by which several names of a provider turn out to mean one model.
var naming = map[Provider]struct {
	// same rules remove a part that makes no difference to the provider.
	same []nameRule
	// variant rules remove the mark of a release or a variant, which shares the limits of
	// its model unless the configuration names it.
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

// A nameRule removes one part of a name, or returns the name as it is.
type nameRule func(name string) string

// PlainName returns the name under which limits know a model, where its provider accepts several
// names for it: Gemini's with and without models/; Ollama's in any case, with its registry or
// library, and with the tag latest; Azure's deployments and OpenRouter's models in any case;
// Anthropic's with the generation before or after the family, with dots or dashes; Bedrock's ARNs.
func PlainName(p Provider, model string) string { return applyRules(model, naming[p].same) }

// BaseName returns the plain name of the model that a release or a variant belongs to, or the plain
// name itself: gpt-4o for gpt-4o-2024-08-06, claude-haiku-3-5 for claude-3-5-haiku-latest, and for
// OpenRouter x for x:nitro.
func BaseName(p Provider, model string) string {
	rules := naming[p]
	for {
		name := applyRules(undated(applyRules(model, rules.same)), rules.variant)
		if name == model {
			return name
		}
		model = name
	}
}

// applyRules applies rules until none of them changes the name. It ends because each rule shortens
// the name, or changes nothing when it is applied again.
func applyRules(name string, rules []nameRule) string {
	for i := 0; i < len(rules); i++ {
		if changed := rules[i](name); changed != name && changed != "" {
			name, i = changed, -1
		}
	}
	return name
}

// after removes a prefix.
func after(prefix string) nameRule {
	return func(name string) string { return strings.TrimPrefix(name, prefix) }
}

// unversioned removes the version of one of Bedrock's models, such as :0 or :0:24k. It leaves ARNs
// alone, which have colons of their own.
func unversioned(name string) string {
	if strings.HasPrefix(name, "arn:") {
		return name
	}
	return upTo(":")(name)
}

// without removes a suffix.
func without(suffix string) nameRule {
	return func(name string) string { return strings.TrimSuffix(name, suffix) }
}

// upTo removes a sign and everything behind it.
func upTo(sign string) nameRule {
	return func(name string) string {
		name, _, _ = strings.Cut(name, sign)
		return name
	}
}

// date removes a suffix that has digits where the pattern has zeros.
func date(pattern string) nameRule {
	return func(name string) string {
		if at := len(name) - len(pattern); at > 0 && isLike(name[at:], pattern) {
			return name[:at]
		}
		return name
	}
}

var dates = []nameRule{date("-0000-00-00"), date("-00000000")}

// undated returns the name of a model without the date of a release, as OpenAI and Anthropic write
// it: gpt-4o for gpt-4o-2024-08-06, claude-sonnet-4 for claude-sonnet-4-20250514. A name without a
// date stays as it is.
func undated(model string) string {
	for _, undo := range dates {
		if name := undo(model); name != model {
			return name
		}
	}
	return model
}

// isLike reports whether a text has digits where the pattern has zeros, and is equal to it
// elsewhere.
func isLike(text, pattern string) bool {
	for i := range len(pattern) {
		digit := text[i] >= '0' && text[i] <= '9'
		if pattern[i] == '0' && !digit || pattern[i] != '0' && text[i] != pattern[i] {
			return false
		}
	}
	return true
}

// claude rewrites one of Anthropic's names in the newer form: the family, then the generation, with
// dashes. claude-3.5-haiku becomes claude-haiku-3-5.
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

// generationOf returns the one or two numbers at the start of a text, each of one or two digits,
// such as 3-5 or 3.5. A date has more digits.
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
