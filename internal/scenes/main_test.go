// Package scenes simulates projects that share a quota, on fake time. Nothing in it is about races that other tests do not
// have, and the race detector would make it ten times as long, so `make test` runs it without.
package scenes

import (
	"fmt"
	"os"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

func TestMain(m *testing.M) {
	if testkit.Raced {
		fmt.Println("skipped: make test runs these tests without the race detector")
		os.Exit(0)
	}
	os.Exit(m.Run())
}
