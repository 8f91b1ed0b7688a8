package keys

// Is reports whether a text has the form of a key.
func Is(text string) bool {
	_, _, ok := split(text)
	return ok
}
