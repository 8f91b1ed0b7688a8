package mockprovider

import (
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// failure is an error that a client receives.
type failure struct {
	status  int
	code    string // empty: the provider's usual code
	message string
	retry   time.Duration // the wait that the provider asks for; 0: none
	model   string
}

// body returns the body of an error in the provider's format.
func (f failure) body(p llm.Provider) object {
	if own := imitationOf(p).errorBody; own != nil {
		return own(f)
	}
	return openAIError(f)
}
