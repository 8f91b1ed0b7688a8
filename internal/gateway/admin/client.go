package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
)

// Client calls the admin API of a gateway. An error that the API has answered with is a
// [*Problem]; an error of the connection wraps that of net/http.
type Client struct {
	Base  string       // such as http://127.0.0.1:8081
	Token string       // empty: none is sent
	HTTP  *http.Client // nil: one that gives up after 30 seconds

}

// State returns the state of the gateway.
func (c *Client) State(ctx context.Context) (State, error) {
	return get[State](ctx, c, http.MethodGet, "/v1/state", nil)
}

// Projects returns a project and all that are known below it.
func (c *Client) Projects(ctx context.Context, below string) ([]Project, error) {
	return getAll(ctx, c, "/v1/projects?below="+url.QueryEscape(below)+"&", func(page ProjectList) ([]Project, string) { return page.Projects, page.Next })
}

// Keys returns all virtual keys.
func (c *Client) Keys(ctx context.Context) ([]keys.Key, error) {
	return getAll(ctx, c, "/v1/keys?", func(page KeyList) ([]keys.Key, string) { return page.Keys, page.Next })
}

// getAll returns the entries of all pages at a path, which ends in ? or &. read returns those of a page, and the parameter
// after of the next page, or "" if there is none.
func getAll[Page, T any](ctx context.Context, c *Client, path string, read func(Page) ([]T, string)) (all []T, err error) {
	for after := ""; ; {
		page, err := get[Page](ctx, c, http.MethodGet, path+"limit=1000&after="+url.QueryEscape(after), nil)
		if err != nil {
			return nil, err
		}
		entries, next := read(page)
		all = append(all, entries...)
		if next == "" {
			return all, nil
		}
		after = next
	}
}

// CreateKey makes a key of a project.
func (c *Client) CreateKey(ctx context.Context, k NewKey) (IssuedKey, error) {
	return get[IssuedKey](ctx, c, http.MethodPost, "/v1/keys", k)
}

// maxAnswer is how many bytes of an answer a Client reads.
const maxAnswer = 64 << 20

// get sends a request to the API and returns its answer.
func get[T any](ctx context.Context, c *Client, method, path string, body any) (answer T, err error) {
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	from := io.LimitReader(resp.Body, maxAnswer)
	if resp.StatusCode >= 300 {
		return answer, c.problemIn(resp)
	}
	if resp.StatusCode == http.StatusNoContent {
		return answer, nil
	}
	if err := json.NewDecoder(from).Decode(&answer); err != nil {
		return answer, fmt.Errorf("ratelimit: what answers at %s is not the admin API of a gateway: %w: %s", c.Base, err, c.wantedBase())
	}
	return answer, nil
}

// problemIn returns the problem that an answer is.
func (c *Client) problemIn(resp *http.Response) error {
	p := Problem{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&p); err != nil || p.Detail == "" {
		return fmt.Errorf("ratelimit: the gateway's admin API has answered with %s, and gave no reason: %s", resp.Status, c.wantedBase())
	}
	p.Status = resp.StatusCode
	return &p
}

func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var text io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.Base, "/")+path, text)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: the address of the admin API: %w: it must be one such as http://127.0.0.1:8081", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	client := c.HTTP
	if client == nil {
		client = &http.Client{Timeout: 30 * time.Second}
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: cannot ask the gateway: %w", err)
	}
	return resp, nil
}

// wantedBase is the hint for an answer that does not look like the admin API's.
func (c *Client) wantedBase() string {
	return c.Base + " must be the address of the admin API, not the one for clients; with TLS, it begins with https://"
}
