package main

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "0d": 0, "90m": 90 * time.Minute, "720h": 30 * day, "30d": 30 * day, "1h30m": 90 * time.Minute, "65535d": 65535 * day,
	} {
		var s span
		if err := s.Set(text); err != nil || time.Duration(s) != want {
			t.Errorf("%s is %v, %v: want %v", text, time.Duration(s), err, want)
		}
	}
	for _, text := range []string{"", "d", "30", "-1s", "-1d", "+1d", "1.5d", "1d12h", "65536d", "99999999999999999999d", "nonsense"} {
		s := span(1)
		if err := s.Set(text); err == nil || s != 1 {
			t.Errorf("%q is %v", text, time.Duration(s))
		}
	}
}
