package price

import "strings"

// matches reports whether a name matches a pattern, in which * stands for any characters, # for a
// digit, and everything else for itself.
func matches(pattern, name string) bool {
	first, rest, more := strings.Cut(pattern, "*")
	if !begins(name, first) {
		return false
	}
	name = name[len(first):]
	if !more {
		return name == ""
	}
	for {
		first, rest, more = strings.Cut(rest, "*")
		if !more {
			return len(name) >= len(first) && begins(name[len(name)-len(first):], first)
		}
		for !begins(name, first) {
			if name == "" {
				return false
			}
			name = name[1:]
		}
		name = name[len(first):]
	}
}

// begins reports whether a name begins with a text, in which # stands for a digit.
func begins(name, text string) bool {
	if len(name) < len(text) {
		return false
	}
	for i := range len(text) {
		if c := name[i]; c != text[i] && (text[i] != '#' || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// isPattern reports whether a text may match several names.
func isPattern(text string) bool { return strings.ContainsAny(text, "*#") }
