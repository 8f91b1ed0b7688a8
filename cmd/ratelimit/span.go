package main

import (
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
)

// span is a flag with a duration, as [control.ParseDuration] reads it.
type span time.Duration

func (s *span) Set(text string) error {
	d, err := control.ParseDuration(text)
	if err == nil {
		*s = span(d)
	}
	return err
}

func (s *span) String() string {
	if *s == 0 {
		return "" // so that the help shows no default
	}
	return time.Duration(*s).String()
}

func (s *span) Type() string { return "duration" }
