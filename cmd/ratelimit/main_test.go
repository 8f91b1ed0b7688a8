package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asProgram is the variable with which the tests' own binary is the program.
const asProgram = "RATELIMIT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}
