// Package gateway_test tests the gateway with the SDKs that providers publish, for Go and for
// Node.js, as they are: all that they are given is a base URL and a key.
package gateway_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"), // which Gemini's SDK starts
		goleak.Cleanup(endNodes),
	)
}
