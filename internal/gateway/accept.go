package gateway

import (
	"strconv"
	"strings"
)

// prefersHTML reports whether a client would rather have a page than JSON, by its Accept headers.
func prefersHTML(accept []string) bool {
	list := strings.Join(accept, ",")
	return quality(list, "text/html") > quality(list, "application/json")
}

// quality returns how much a client wants a media type, from 0 to 1: that of the most specific range
// in the list that the type is in.
func quality(list, media string) (q float64) {
	kind, _, _ := strings.Cut(media, "/")
	best := -1
	for item := range strings.SplitSeq(list, ",") {
		name, parameters, _ := strings.Cut(item, ";")
		specific := -1
		switch strings.ToLower(strings.TrimSpace(name)) {
		case media:
			specific = 2
		case kind + "/*":
			specific = 1
		case "*/*":
			specific = 0
		}
		if specific <= best {
			continue
		}
		best, q = specific, 1
		if _, value, ok := strings.Cut(parameters, "q="); ok {
			q, _ = strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return q
}
