package message

import "slices"

// sameLimits are names of one limit: of a model, of a project, and as providers speak of it.
var sameLimits = [...][]string{
	{"max_rpm", "requests_per_minute", "rpm"},
	{"max_tpm", "tokens_per_minute", "tpm"},
	{"max_rpd", "requests_per_day", "rpd"},
	{"max_tpd", "tokens_per_day", "tpd"},
}

// Nearest returns the name among names that the user probably meant by a wrong name, or "" if none is
// similar. The name of a limit elsewhere is that of the limit here, if it is among names.
func Nearest(name string, names []string) (best string) {
	for _, same := range sameLimits {
		if i := slices.IndexFunc(names, func(n string) bool { return slices.Contains(same, n) }); i >= 0 && slices.Contains(same, name) {
			return names[i]
		}
	}
	least := 1 + max(len(name), 3)/3
	for _, other := range names {
		if d := distance(name, other); d < least {
			best, least = other, d
		}
	}
	return best
}

// distance returns how many letters must be added, left out, replaced, or swapped with their neighbour,
// to turn one name into the other.
func distance(a, b string) int {
	if len(a) > 64 { // no field has such a name
		return len(a)
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			replace := last[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
