module dappco.re/go/core/go-ratelimit

go 1.26
