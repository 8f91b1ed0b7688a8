// Package tokencount asks providers over the network how many tokens a text is.
package tokencount

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Counter asks a provider how many tokens a text is. It needs a Provider
// (Gemini, OpenAI or Anthropic) and a key. It sends the key in a header, to the
// base URL's host alone, and shows it in no error.
type Counter struct {
	Provider llm.Provider
	APIKey   string

	// BaseURL comes before the provider's own path, which begins with /v1 or
	// /v1beta: https://host, or https://host/prefix behind a proxy. Empty: the
	// provider's own.
	BaseURL string

	// Client sends the request, but follows no redirect. Nil: a client that
	// gives up after 30 seconds.
	Client *http.Client
}

const (
	maxAnswer  = 1 << 20   // how many bytes of an answer are read
	maxQuoted  = 300       // how many bytes of an answer an error quotes
	maxCounted = 1<<31 - 1 // more tokens than any model reads
)

var countClient = &http.Client{Timeout: 30 * time.Second}

var errRedirect = errors.New("the server redirects elsewhere, and the key may not go there: set the base URL to where it belongs")

// Count returns how many tokens a model reads for the text as one message of a
// user; a provider may count the marks around the message too. Count asks once.
// If ctx ends first, the error wraps the context's.
func (c Counter) Count(ctx context.Context, model, text string) (int, error) {
	n, err := c.count(ctx, model, text)
	if err != nil {
		return 0, fmt.Errorf("ratelimit: counting tokens with %q: %w", c.Provider, err)
	}
	return n, nil
}

func (c Counter) count(ctx context.Context, model, text string) (int, error) {
	if c.Provider == dialect.Gemini {
		model = strings.TrimPrefix(model, "models/") // as Gemini lists it
	}
	q, err := c.question(model, text)
	if err != nil {
		return 0, err
	}
	if err := c.check(model, text); err != nil {
		return 0, err
	}
	base, err := parseBase(cmp.Or(c.BaseURL, q.base))
	if err != nil {
		return 0, err
	}
	answer, err := c.ask(ctx, base+q.path, q)
	if err != nil {
		return 0, err
	}
	return c.read(answer, q.field)
}

// question is the request with which a Counter asks its provider.
type question struct {
	base, path string
	header     http.Header
	body       any
	field      string // the field of the answer that has the count
}

func (c Counter) question(model, text string) (question, error) {
	type object = map[string]any
	switch c.Provider {
	case dialect.Gemini:
		// The method follows a colon, so the model's name must have none.
		segment := strings.ReplaceAll(url.PathEscape(model), ":", "%3A")
		return question{
			base:   "https://generativelanguage.googleapis.com",
			path:   "/v1beta/models/" + segment + ":countTokens",
			header: http.Header{"X-Goog-Api-Key": {c.APIKey}},
			body:   object{"contents": []object{{"parts": []object{{"text": text}}}}},
			field:  "totalTokens",
		}, nil
	case dialect.OpenAI:
		return question{
			base:   "https://api.openai.com",
			path:   "/v1/responses/input_tokens",
			header: http.Header{"Authorization": {"Bearer " + c.APIKey}},
			body:   object{"model": model, "input": text},
			field:  "input_tokens",
		}, nil
	case dialect.Anthropic:
		return question{
			base:   "https://api.anthropic.com",
			path:   "/v1/messages/count_tokens",
			header: http.Header{"X-Api-Key": {c.APIKey}, "Anthropic-Version": {"2023-06-01"}},
			body:   object{"model": model, "messages": []object{{"role": "user", "content": text}}},
			field:  "input_tokens",
		}, nil
	}
	return question{}, fmt.Errorf("the provider must be %s, %s or %s", dialect.Gemini, dialect.OpenAI, dialect.Anthropic)
}

// check returns what is wrong with the key, the model or the text.
func (c Counter) check(model, text string) error {
	invisible := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case c.APIKey == "":
		return errors.New("the API key is empty")
	case strings.ContainsFunc(c.APIKey, invisible):
		return errors.New("the API key must be visible ASCII characters, without spaces or line breaks")
	case model == "":
		return errors.New("the model is empty")
	case !utf8.ValidString(model):
		return errors.New("the model is not valid UTF-8")
	case !utf8.ValidString(text):
		return errors.New("the text is not valid UTF-8")
	}
	return nil
}

// parseBase returns a base URL without its last slash. Its errors do not quote
// the URL, which may have a password.
func parseBase(base string) (string, error) {
	u, err := url.Parse(base)
	fault := ""
	switch {
	case err != nil:
		fault = "it does not parse"
	case u.Scheme != "http" && u.Scheme != "https":
		fault = "it begins with neither http:// nor https://"
	case u.Hostname() == "":
		fault = "it has no host"
	case u.User != nil:
		fault = "it holds a user"
	case u.RawQuery != "" || u.ForceQuery:
		fault = "it holds a query"
	case u.Fragment != "":
		fault = "it holds a fragment"
	default:
		return strings.TrimRight(u.String(), "/"), nil
	}
	return "", fmt.Errorf("the base URL must be such as https://host or https://host/prefix: %s", fault)
}

// ask sends a question and returns the answer.
func (c Counter) ask(ctx context.Context, address string, q question) ([]byte, error) {
	body, err := json.Marshal(q.body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = q.header
	request.Header.Set("Content-Type", "application/json")

	client := *cmp.Or(c.Client, countClient)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return errRedirect }
	response, err := client.Do(request)
	if err != nil {
		return nil, c.fault(ctx, err)
	}
	defer response.Body.Close()

	status := strings.TrimSpace(fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode)))
	if response.StatusCode == http.StatusSwitchingProtocols {
		return nil, errors.New(status) // its body is the connection, which has no end
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s, but reading the answer: %w", status, c.fault(ctx, err))
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: %s", status, c.quote(messageOf(answer)))
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	return answer, nil
}

// messageOf returns the message of an error, which is in the same field for all
// three providers, or the whole answer where it has none.
func messageOf(answer []byte) string {
	var fault struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(answer, &fault); err != nil || fault.Error.Message == "" {
		return string(answer)
	}
	return fault.Error.Message
}

// read returns the count in an answer.
func (c Counter) read(answer []byte, field string) (int, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(answer, &fields); err != nil {
		return 0, fmt.Errorf("the answer is no JSON object: %s", c.quote(string(answer)))
	}
	value, ok := fields[field]
	if !ok {
		return 0, fmt.Errorf("the answer has no %s: %s", field, c.quote(string(answer)))
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 || n > maxCounted {
		return 0, fmt.Errorf("the answer's %s must be a whole number from 0 to %d: %s", field, maxCounted, c.quote(string(value)))
	}
	return int(n), nil
}

// fault returns an error of the HTTP client, or the context's error if the
// context has ended. A server may send the key back in an error. Then fault
// returns another error, whose text does not have the key.
func (c Counter) fault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if text := c.quote(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// quote returns a server's text as an error may quote it: printable, without
// the key, and short.
func (c Counter) quote(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	escaped := strconv.Quote(c.APIKey) // as JSON has it too
	text = strings.NewReplacer(c.APIKey, "[key]", escaped[1:len(escaped)-1], "[key]").Replace(text)
	text = strings.TrimSpace(text)
	if text == "" {
		return "(empty)"
	}
	if len(text) > maxQuoted {
		return strings.ToValidUTF8(text[:maxQuoted], "") + "…"
	}
	return text
}
