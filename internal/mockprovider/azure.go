package mockprovider

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

var _ = register(imitation{
	provider:    dialect.Azure,
	modelFolder: "/deployments/",
	errorBody: func(f failure) object {
		return object{"error": object{"code": cmp.Or(f.code, strconv.Itoa(f.status)), "message": f.message}}
	},
	limits: func(h http.Header, at limitStates, _ limitTime) {
		writeBuckets(h, at, func(reset time.Duration) string { return strconv.Itoa(seconds(reset)) })
	},
	retryHeader: func(h http.Header, wait time.Duration) {
		retryAfter(h, wait)
		h.Set("Retry-After-Ms", strconv.FormatInt((wait+time.Millisecond-1).Milliseconds(), 10))
	},
})
