package gateway

import (
	"net/http"

	"golang.org/x/net/http/httpguts"
)

// websocket reports whether a request asks for a WebSocket: by the header Upgrade, or by the
// other headers of the handshake if a proxy has removed Upgrade. An Upgrade to anything else is
// ignored, as RFC 9110 allows: Java's HTTP client offers h2c with every plain request.
func websocket(h http.Header) bool {
	return h["Sec-Websocket-Key"] != nil || h["Sec-Websocket-Version"] != nil ||
		httpguts.HeaderValuesContainsToken(h["Upgrade"], "websocket")
}

// refuseWebSocket answers 426. OpenAI's Codex CLI then uses plain HTTP at once; after any other
// status, it tries again. RFC 9110 demands that the answer names the protocol to use, for which
// HTTP/2 has no header.
func (x *exchange) refuseWebSocket() *refusal {
	if x.r.ProtoMajor == 1 {
		h := x.w.Header()
		h["Upgrade"], h["Connection"] = []string{"HTTP/1.1"}, []string{"Upgrade"}
	}
	return refusalf(http.StatusUpgradeRequired, "the gateway does not forward WebSockets: send a plain HTTP request, whose answer may be a stream of server-sent events")
}
