package admit

// Single returns the value of a header that may be there several times with the same value. The
// error is the argument none if the header is missing, and several if its values differ.
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
