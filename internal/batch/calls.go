package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/llm"
)

// ReadLine reads a line of a file of OpenAI's: one call, with its URL and its body. If the call is
// none of a model in a format that package llm reads, the request has the model alone; if it is free, it has nothing.
func ReadLine(line []byte, provider llm.Provider) (r dialect.Request, body []byte, err error) {
	values, err := Fields(line, "method", "url", "body")
	if err != nil {
		return r, nil, err
	}
	to, err := url.Parse(text(values[1]))
	if err != nil || to.Path == "" {
		return r, nil, errors.New(`ratelimit: its "url" must be a path such as "/v1/chat/completions"`)
	}
	if method := text(values[0]); method != http.MethodPost {
		return r, nil, fmt.Errorf(`ratelimit: its "method" is %.20q: it must be "POST"`, method)
	}
	if values[2] == nil {
		return r, nil, errors.New(`ratelimit: it has no "body"`)
	}
	endpoint, ok := dialect.Recognize(http.MethodPost, &url.URL{Path: to.Path})
	switch {
	case !ok && dialect.UsesNoTokens(provider, to.Path):
		return r, values[2], nil
	case !ok:
		model, err := Fields(values[2], "model")
		if err != nil {
			return r, nil, inBody(err)
		}
		return dialect.Request{Endpoint: dialect.Endpoint{Provider: provider, Model: text(model[0])}}, values[2], nil
	}
	if endpoint.API != dialect.Messages {
		endpoint.Provider = provider
	}
	r, err = read(endpoint, values[2])
	return r, values[2], err
}

// EachGenerate reads the body of a batch of Gemini's, which has its calls in it or names a file with them, and calls each
// with every one of them and its own body. The model is that of the path.
func EachGenerate(body []byte, model string, each func(r dialect.Request, body []byte) error) (file string, err error) {
	for _, names := range [][]string{{"batch"}, {"inputConfig", "input_config"}, {"requests", "fileName", "file_name"}} {
		values, err := Fields(body, names...)
		if err != nil {
			return "", err
		}
		values = slices.DeleteFunc(values, func(v json.RawMessage) bool { return v == nil })
		switch {
		case len(values) != 1:
			return "", fmt.Errorf("ratelimit: it must have one of the fields %s", strings.Join(names, ", "))
		case text(values[0]) != "":
			return text(values[0]), nil
		}
		body = values[0]
	}
	return "", eachOf(body, func(item []byte) error {
		values, err := Fields(item, "request")
		if err != nil {
			return err
		}
		request, err := read(dialect.Endpoint{Provider: dialect.Gemini, API: dialect.Generate, Model: model}, values[0])
		switch {
		case err != nil:
			return err
		case request.InBody != "" && dialect.PlainName(dialect.Gemini, request.InBody) != dialect.PlainName(dialect.Gemini, model):
			return fmt.Errorf("ratelimit: its model is %.100q: it must be that of the path", request.InBody)
		}
		return each(request, values[0])
	})
}

// EachInline reads the body of a batch of Anthropic's, which has its calls in it, and calls each with
// every one of them and its own body.
func EachInline(body []byte, each func(r dialect.Request, body []byte) error) error {
	return eachOf(body, func(item []byte) error { return eachInline(item, each) })
}

// eachOf calls each with every element of the list "requests" of an object.
func eachOf(body []byte, each func(item []byte) error) error {
	values, err := Fields(body, "requests")
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(values[0]))
	if first, err := decoder.Token(); err != nil || first != json.Delim('[') {
		return errors.New(`ratelimit: "requests" must be a list`)
	}
	for n := 0; decoder.More(); n++ {
		var item json.RawMessage
		if err := decoder.Decode(&item); err != nil {
			return errObject
		}
		if err := each(item); err != nil {
			return fmt.Errorf("ratelimit: requests[%d]: %s", n, message.Plain(err))
		}
	}
	return nil
}

func eachInline(item []byte, each func(r dialect.Request, body []byte) error) error {
	values, err := Fields(item, "params")
	if err != nil {
		return err
	}
	if values[0] == nil {
		return errors.New(`ratelimit: it has no "params"`)
	}
	request, err := read(dialect.Endpoint{Provider: dialect.Anthropic, API: dialect.Messages}, values[0])
	if err != nil {
		return err
	}
	return each(request, values[0])
}

// read reads the body of a call, which servers must not be able to read in another way.
func read(e dialect.Endpoint, body []byte) (dialect.Request, error) {
	request, err := e.Read(body)
	switch {
	case err != nil:
		return request, inBody(err)
	case request.Ambiguous:
		return request, errors.New(`ratelimit: its body has two fields "model" that differ`)
	case request.Wrong != "":
		return request, fmt.Errorf("ratelimit: its body: %s", request.Wrong)
	}
	return request, nil
}

func inBody(err error) error { return fmt.Errorf("ratelimit: its body: %s", message.Plain(err)) }
