package gateway

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// fieldID is the header of every answer with the gateway's id of the request.
const fieldID = "X-Gateway-Request-Id"

// idSource makes the ids of requests: a random prefix, which no other run of a gateway has,
// and a number.
type idSource struct {
	prefix string
	last   atomic.Uint64
}

func newIDSource() *idSource {
	return &idSource{prefix: "gw_" + strings.ToLower(rand.Text()[:10]) + "_"}
}

// next returns a new id.
func (s *idSource) next() string {
	var room [40]byte
	return string(strconv.AppendUint(append(room[:0], s.prefix...), s.last.Add(1), 10))
}

// setRequestID sets the header with the request's id. If the provider has sent no id of its
// own, the gateway's is also in the header where the client's SDK looks for one.
func (x *exchange) setRequestID(to http.Header) {
	id := []string{x.ID}
	to[fieldID] = id
	for _, name := range requestIDFields {
		if to[name] != nil {
			return
		}
	}
	to[x.endpoint.API.RequestIDHeader()] = id
}
