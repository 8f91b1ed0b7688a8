package limit

import (
	"testing"

	"go.uber.org/goleak"
)

// A limiter starts no goroutine, so none is left when the tests are over.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
