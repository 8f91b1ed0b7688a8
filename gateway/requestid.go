package gateway

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/llm"
)

// fieldID is the header of every answer that has the gateway's own id of its request.
const fieldID = "X-Gateway-Request-Id"

// numbering gives every request of a gateway an id: a random prefix, which tells the
// runs of all gateways apart, and a number.
type numbering struct {
	prefix string
	last   atomic.Uint64
}

func newNumbering() *numbering {
	return &numbering{prefix: "gw_" + strings.ToLower(rand.Text()[:10]) + "_"}
}

// next returns the id of another request.
func (n *numbering) next() string {
	var room [40]byte
	return string(strconv.AppendUint(append(room[:0], n.prefix...), n.last.Add(1), 10))
}

// identifyAnswer tells the client the id of its request. Where the provider has given
// none, it is also where the client's SDK looks for the provider's.
func (x *exchange) identifyAnswer(to http.Header) {
	to[fieldID] = x.ids[:]
	for _, name := range fieldsOfRequestID {
		if to[name] != nil {
			return
		}
	}
	switch x.endpoint.API {
	case llm.Messages:
		to["Request-Id"] = x.ids[:]
	case llm.Converse, llm.Invoke:
		to["X-Amzn-Requestid"] = x.ids[:]
	default:
		to["X-Request-Id"] = x.ids[:]
	}
}
