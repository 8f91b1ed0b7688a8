package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// span is a flag with a duration: as [time.ParseDuration] reads it, or in days, such as 30d.
type span time.Duration

func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16) // more days would overflow the nanoseconds
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d < 0 {
		return errors.New("it must be 0 or more, such as 90m, 12h or 30d")
	}
	*s = span(d)
	return nil
}

func (s *span) String() string {
	if *s == 0 {
		return "" // so that the help shows no default
	}
	return time.Duration(*s).String()
}

func (s *span) Type() string { return "duration" }
