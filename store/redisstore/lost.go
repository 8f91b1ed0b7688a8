package redisstore

import "errors"

// ErrLost says that Redis did not answer in time, or cannot serve.
var ErrLost = errors.New("ratelimit: redis is lost")
