package gateway

import (
	"context"
	"io"
	"net/http"
	"time"
)

// link is the connection to a provider that is used for a request which is no call of a model. It ends when the client
// leaves, unless the answer settles something: then the gateway reads the rest of the answer, so that a client does not
// pay less because it has left before the end.
type link struct {
	ctx    context.Context
	end    context.CancelFunc
	detach func() bool // lets the link go on when the client leaves
}

func newLink(client context.Context) *link {
	l := new(link)
	l.ctx, l.end = context.WithCancel(context.WithoutCancel(client))
	l.detach = context.AfterFunc(client, l.end)
	return l
}

// send is [exchange.send] on the link.
func (l *link) send(x *exchange, d *deployment, body io.ReadCloser, length int64) (*http.Response, error) {
	client := x.ctx
	defer func() { x.ctx = client }()
	x.ctx = l.ctx
	return x.send(d, body, length)
}

// readRestFor is how long the gateway reads on after a client has left.
const readRestFor = 10 * time.Second

// readRest reads what is left of an answer. An answer that the client has got has nothing left.
func (l *link) readRest(answer io.Reader) {
	timer := time.AfterFunc(readRestFor, l.end)
	defer timer.Stop()
	io.Copy(io.Discard, io.LimitReader(answer, maxPassed))
}
