package llmhttp_test

import (
	"testing"

	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const model = llmhttptest.Model

var ample = llmhttptest.Ample
