package dialect

import (
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// nameRules are the rules by which several names of a provider turn out to mean one model.
type nameRules struct {
	same    []nameRule // each removes a part that makes no difference to the provider
	variant []nameRule // each removes the mark of a release or a variant, which shares the limits of its model unless the configuration names it
}

// A nameRule removes one part of a name, or returns the name as it is.
type nameRule func(name string) string

// PlainName returns the name under which limits know a model, where its provider accepts several
// names for it: Gemini's with and without models/; Ollama's in any case, with its registry or
// library, and with the tag latest; Azure's deployments and OpenRouter's models in any case;
// Anthropic's with the generation before or after the family, with dots or dashes; Bedrock's ARNs.
func PlainName(p llm.Provider, model string) string {
	return applyRules(model, dialectOf(p).names.same)
}

// BaseName returns the plain name of the model that a release or a variant belongs to, or the plain
// name itself: gpt-4o for gpt-4o-2024-08-06, claude-haiku-3-5 for claude-3-5-haiku-latest, and for
// OpenRouter x for x:nitro.
func BaseName(p llm.Provider, model string) string {
	rules := &dialectOf(p).names
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
