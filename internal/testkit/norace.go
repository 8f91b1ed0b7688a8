//go:build !race

package testkit

// Raced reports whether the race detector watches the tests.
const Raced = false
