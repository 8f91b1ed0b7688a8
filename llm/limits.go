package llm

import "time"

// Unit is what a limit counts.
type Unit string

const (
	Requests     Unit = "requests"
	AllTokens    Unit = "tokens" // prompt and output together
	InputTokens  Unit = "input tokens"
	OutputTokens Unit = "output tokens"
)

// Day is the Per of a limit by the day.
const Day = 24 * time.Hour

// Window is the state of one of a provider's limits.
type Window struct {
	Unit      Unit
	Per       time.Duration // time.Second, time.Minute, Day, or 0 if unknown
	Limit     int64         // 0 if the provider does not say
	Remaining int64         // -1 if the provider does not say
	Reset     time.Duration // the time until it is full again, at most Per; 0 if the provider does not say
}

// Cause is why a provider throttles a call.
type Cause string

const (
	RateLimited Cause = "rate limit"
	DayLimited  Cause = "day limit" // to try again within seconds is of no use
	SpendCap    Cause = "spend cap" // no call passes until the customer pays
	Overloaded  Cause = "overload"  // the provider has too much load; the caller is within its limits
)

// Limits is what a response says about the provider's limits.
type Limits struct {
	Windows []Window

	// Cause is why the call was throttled, or empty. With a Cause, Pause is how long to send nothing
	// to the model: the time that the provider has asked for, or else a guess.
	Cause Cause
	Pause time.Duration
}
