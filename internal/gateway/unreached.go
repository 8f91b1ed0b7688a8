package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// unreached refuses a call that the provider has not answered. If the call was not sent, the
// client may send it again. If it was, the client's SDK follows its own rule, as it would
// without the gateway.
func (x *exchange) unreached(err error) *refusal {
	if x.ctx.Err() != nil {
		return clientLeft()
	}
	x.Error = x.hider.redact(err.Error())
	status, what := reason(err, x.sent)
	return &refusal{dialect.Refusal{
		Status: status, Message: fmt.Sprintf("the provider %q %s", x.Provider, what),
		Retry: !x.sent, LeaveRetry: x.sent,
	}, Failed}
}

// reason returns the status and the text for a provider that has not answered. The text is
// one of a few, so that it has no address, port or name of a host behind the gateway. The log
// has the error itself.
func reason(err error, sent bool) (status int, what string) {
	var late interface{ Timeout() bool }
	if errors.As(err, &late) && late.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		if sent {
			return http.StatusGatewayTimeout, "has not answered in time"
		}
		return http.StatusGatewayTimeout, "could not be reached: timed out"
	}
	if !sent {
		return http.StatusBadGateway, "could not be reached" + whyUnsent(err)
	}
	for _, closed := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, closed) {
			return http.StatusBadGateway, "closed the connection before it answered"
		}
	}
	return http.StatusBadGateway, "has given no valid answer"
}

// whyUnsent says why a request could not be sent, or nothing for an unknown reason.
func whyUnsent(err error) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return ": no such host"
	case errors.As(err, &name):
		return ": its name could not be looked up"
	case errors.As(err, &certificate):
		return ": its certificate is not valid"
	case errors.As(err, &alert), errors.As(err, &record):
		return ": the TLS handshake failed"
	case errors.Is(err, syscall.ECONNREFUSED):
		return ": connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return ": no route to it"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return ": it closed the connection"
	}
	return ""
}
