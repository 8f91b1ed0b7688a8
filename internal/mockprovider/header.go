package mockprovider

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// FromHeader is the default script of a server: it follows the header X-Mock, which has words such
// as output=20 and fault=reset. A header with an unknown word or value gets an error that says what
// is wrong.
func FromHeader(c Call) Reply {
	var r Reply
	for _, word := range strings.Fields(c.Header.Get("X-Mock")) {
		if err := r.set(word); err != nil {
			return Reply{Status: http.StatusBadRequest, Text: err.Error()}
		}
	}
	return r
}

// set sets the field that a word names.
func (r *Reply) set(word string) (err error) {
	name, value, _ := strings.Cut(word, "=")
	numbers := map[string]*int{
		"input": &r.Input, "output": &r.Output, "reasoning": &r.Reasoning, "hidden": &r.Hidden, "chunk": &r.Chunk,
		"cached": &r.Cached, "cache-write": &r.CacheWrite, "cache-write-hour": &r.Parts.CacheWriteHour,
		"input-audio": &r.Parts.InputAudio, "cached-audio": &r.Parts.CachedAudio, "input-image": &r.Parts.InputImage,
		"output-audio": &r.Parts.OutputAudio, "output-image": &r.Parts.OutputImage,
		"web-searches": &r.WebSearches, "web-fetches": &r.WebFetches, "places": &r.Places, "file-searches": &r.FileSearches,
		"code-runs": &r.CodeRuns, "images": &r.Images, "status": &r.Status, "after": &r.After,
	}
	if to := numbers[name]; to != nil {
		*to, err = number(value)
	} else {
		err = r.setText(name, value)
	}
	if err != nil {
		return fmt.Errorf("X-Mock: %q: %w", word, err)
	}
	return nil
}

// setText sets a field that is no number.
func (r *Reply) setText(name, value string) (err error) {
	switch name {
	case "tier":
		r.Parts.Tier = value
	case "cost":
		r.Parts.Cost, err = amount(value)
	case "code":
		r.Code = value
	case "tool":
		r.Tool = &Tool{Name: value, Arguments: `{"city":"Paris"}`}
	case "fault":
		r.Fault, err = faultOf(value)
	case "as":
		r.As, err = providerOf(value)
	case "retry-after":
		r.RetryAfter, err = time.ParseDuration(value)
	case "delay":
		r.Delay, err = time.ParseDuration(value)
	default:
		err = errors.New("there is no such word")
	}
	return err
}

func number(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > maxTokens {
		return 0, fmt.Errorf("it must be a number from 0 to %d", maxTokens)
	}
	return n, nil
}

// amount returns a decimal number as JSON.
func amount(value string) (json.Number, error) {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || !(n >= 0) || !json.Valid([]byte(value)) {
		return "", errors.New("it must be a number of dollars, such as 0.0125")
	}
	return json.Number(value), nil
}

func faultOf(value string) (Fault, error) {
	switch f := Fault(value); f {
	case FaultError, FaultReset, FaultStall, FaultEnd:
		return f, nil
	}
	return "", fmt.Errorf("it must be %s, %s, %s or %s", FaultError, FaultReset, FaultStall, FaultEnd)
}
