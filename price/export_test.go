package price

// Remembered returns how many look-ups a table remembers.
func Remembered(t *Table) int { return len(t.found) }

var (
	Matches = matches
	Read    = read
)
