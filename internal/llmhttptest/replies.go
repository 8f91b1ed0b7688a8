package llmhttptest

import "dappco.re/go/core/go-ratelimit/internal/mockprovider"

// Script returns the configuration of a provider that replies the same to every call.
func Script(r mockprovider.Reply) mockprovider.Config {
	return mockprovider.Config{Script: Always(r)}
}

// Always returns a script that replies the same to every call.
func Always(r mockprovider.Reply) func(mockprovider.Call) mockprovider.Reply {
	return func(mockprovider.Call) mockprovider.Reply { return r }
}

// Once returns a script that replies with r to the first call of a model, and as usual to the others.
func Once(r mockprovider.Reply) func(mockprovider.Call) mockprovider.Reply {
	return func(c mockprovider.Call) mockprovider.Reply {
		if c.Number > 1 {
			return mockprovider.Reply{}
		}
		return r
	}
}
