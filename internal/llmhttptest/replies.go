package llmhttptest

import "dappco.re/go/core/go-ratelimit/mockprovider"

// Script returns a provider that always replies the same.
func Script(r mockprovider.Reply) mockprovider.Config {
	return mockprovider.Config{Script: Always(r)}
}

// Always replies the same to every call.
func Always(r mockprovider.Reply) func(mockprovider.Call) mockprovider.Reply {
	return func(mockprovider.Call) mockprovider.Reply { return r }
}

// Once replies so to the first call of a model, and to the others with a text.
func Once(r mockprovider.Reply) func(mockprovider.Call) mockprovider.Reply {
	return func(c mockprovider.Call) mockprovider.Reply {
		if c.Number > 1 {
			return mockprovider.Reply{}
		}
		return r
	}
}
