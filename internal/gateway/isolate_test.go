package gateway

import "dappco.re/go/core/go-ratelimit/internal/bus"

func init() { bus.Isolate() } // many tests have fake time
