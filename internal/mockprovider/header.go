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
	switch name {
	case "input":
		r.Input, err = number(value)
	case "output":
		r.Output, err = number(value)
	case "reasoning":
		r.Reasoning, err = number(value)
	case "hidden":
		r.Hidden, err = number(value)
	case "chunk":
		r.Chunk, err = number(value)
	case "cached":
		r.Cached, err = number(value)
	case "cache-write":
		r.CacheWrite, err = number(value)
	case "cache-write-hour":
		r.Parts.CacheWriteHour, err = number(value)
	case "input-audio":
		r.Parts.InputAudio, err = number(value)
	case "cached-audio":
		r.Parts.CachedAudio, err = number(value)
	case "input-image":
		r.Parts.InputImage, err = number(value)
	case "output-audio":
		r.Parts.OutputAudio, err = number(value)
	case "output-image":
		r.Parts.OutputImage, err = number(value)
	case "web-searches":
		r.WebSearches, err = number(value)
	case "web-fetches":
		r.WebFetches, err = number(value)
	case "places":
		r.Places, err = number(value)
	case "file-searches":
		r.FileSearches, err = number(value)
	case "code-runs":
		r.CodeRuns, err = number(value)
	case "images":
		r.Images, err = number(value)
	case "tier":
		r.Parts.Tier = value
	case "cost":
		r.Parts.Cost, err = amount(value)
	case "status":
		r.Status, err = number(value)
	case "after":
		r.After, err = number(value)
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
		err = fmt.Errorf("there is no such word")
	}
	if err != nil {
		return fmt.Errorf("X-Mock: %q: %w", word, err)
	}
	return nil
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
