package gateway

import (
	"io"

	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// mostCopied is how many bytes a body may have that is copied to put something into it,
// so that it is sent in one write. A larger one is sent in pieces: a copy would be held
// as long as the body is.
const mostCopied = 64 << 10

// asking returns the body with which the provider is asked to tell usage, if it is to be
// asked.
func (x *exchange) asking() (wire.Pieces, bool) {
	if len(x.body) > mostCopied {
		return x.call.Request.AskUsagePieces(x.body)
	}
	text, ok := x.call.Request.AskUsage(x.body)
	if !ok {
		return nil, false
	}
	return wire.Pieces{text}, true
}

// bodyOf returns pieces as the body of a request.
func bodyOf(pieces wire.Pieces) io.ReadCloser {
	if len(pieces) == 1 {
		return (*wire.Bytes)(&pieces[0])
	}
	return &pieces
}
