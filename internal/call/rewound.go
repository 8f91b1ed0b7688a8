package call

import (
	"bytes"
	"io"
)

// Rewound returns a body of which the beginning was read already. Reading it returns the beginning
// once more, and then the rest.
func Rewound(beginning []byte, body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(beginning), body), body}
}
