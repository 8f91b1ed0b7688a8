package admit

// Single returns the one value among those that were sent, however often. It
// returns none if there is none, and several if they differ.
func Single(values []string, none, several error) (string, error) {
	if len(values) == 0 {
		return "", none
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return "", several
		}
	}
	return values[0], nil
}
