package llm

// Units is how many units a call uses beside its tokens, or can use at most. A negative number is one that nobody knows.
type Units [UnitCount]int64

// The places of units in [Units].
const (
	Images        = iota // images that are generated
	AudioSeconds         // seconds of audio that are read
	Characters           // characters that are spoken
	WebSearches          // searches of the web that the provider makes
	FileSearches         // searches of stored files that the provider makes
	Pages                // pages of documents that are read
	VideoSeconds         // seconds of video that are generated
	Containers           // containers in which the provider runs code
	TokenHours           // tokens that the provider keeps, times the hours
	SearchUnits          // searches in the documents of a request, as a ranking is billed
	TrainedTokens        // tokens that a model is trained with, in all epochs
	ByteDays             // bytes that the provider keeps, times the days

	UnitCount
)

// UnknownUnits are units of which nobody knows how many a call has used.
var UnknownUnits = func() (u Units) {
	for i := range u {
		u[i] = -1
	}
	return u
}()

// Or returns the units with those of others where they are not known.
func (u Units) Or(others Units) Units {
	for i, n := range u {
		if n < 0 {
			u[i] = others[i]
		}
	}
	return u
}
