package message

// Nearest returns the name among names that the user probably meant by a wrong name, or "" if none is
// similar.
func Nearest(name string, names []string) (best string) {
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
