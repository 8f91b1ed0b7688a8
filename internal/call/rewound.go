package call

import (
	"bytes"
	"io"
)

// Rewound returns a body whose beginning was read already as one that begins there again.
func Rewound(beginning []byte, body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(beginning), body), body}
}
