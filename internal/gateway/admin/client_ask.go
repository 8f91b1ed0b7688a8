package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// Quotas returns all models that have a quota.
func (c *Client) Quotas(ctx context.Context) ([]Model, error) {
	return getAll(ctx, c, "/v1/quotas?", func(page ModelList) ([]Model, string) { return page.Quotas, page.Next })
}

// Project returns one project.
func (c *Client) Project(ctx context.Context, id string) (Project, error) {
	return get[Project](ctx, c, http.MethodGet, "/v1/projects/"+url.PathEscape(id), nil)
}

// Audit returns a page of the audit log, oldest entry first: of the entries after the one with a
// number, 0 for the first that is kept.
func (c *Client) Audit(ctx context.Context, after uint64) (AuditList, error) {
	return get[AuditList](ctx, c, http.MethodGet, "/v1/audit?limit=1000&after="+strconv.FormatUint(after, 10), nil)
}

// Reload has the gateway read its configuration again.
func (c *Client) Reload(ctx context.Context) (Reloaded, error) {
	return get[Reloaded](ctx, c, http.MethodPost, "/v1/reload", nil)
}

// PreviewReload returns what Reload would change.
func (c *Client) PreviewReload(ctx context.Context) (Reloaded, error) {
	return get[Reloaded](ctx, c, http.MethodPost, "/v1/reload?dry_run=true", nil)
}

// Reset sets the usage of a model or of a project to zero.
func (c *Client) Reset(ctx context.Context, of Reset) error {
	_, err := get[struct{}](ctx, c, http.MethodPost, "/v1/reset", of)
	return err
}

// Decide asks whether a call would pass now. Nothing is charged.
func (c *Client) Decide(ctx context.Context, q Question) (Answer, error) {
	return get[Answer](ctx, c, http.MethodPost, "/v1/decide", q)
}

// Explain returns what was decided on a request, and why.
func (c *Client) Explain(ctx context.Context, id string) (Explanation, error) {
	return get[Explanation](ctx, c, http.MethodGet, "/v1/decisions/"+url.PathEscape(id), nil)
}

// WaitingCalls returns the calls that wait, of a project and a model if these are not empty.
func (c *Client) WaitingCalls(ctx context.Context, project, model string) (WaitingList, error) {
	return get[WaitingList](ctx, c, http.MethodGet, "/v1/waiting?"+withValues("project", project, "model", model), nil)
}

// withValues returns the query of those parameters that have a value.
func withValues(pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q.Encode()
}

// Events calls take with every event of /v1/events, and its data, which is JSON; and first with the event
// "open" and no data, as soon as events are followed. It returns when ctx ends, when take returns an
// error, or when the connection does.
func (c *Client) Events(ctx context.Context, q url.Values, take func(event string, data []byte) error) error {
	return c.follow(ctx, "/v1/events?"+q.Encode(), take)
}

// OverviewLive calls take with an overview, and with every change of it. One of the two arguments is
// nil. It returns as Events does.
func (c *Client) OverviewLive(ctx context.Context, projects int, take func(*Overview, *OverviewDelta) error) error {
	return c.follow(ctx, fmt.Sprintf("/v1/overview/live?projects=%d", projects), func(event string, data []byte) error {
		switch event {
		case "snapshot":
			var whole Overview
			if err := json.Unmarshal(data, &whole); err != nil {
				return err
			}
			return take(&whole, nil)
		case "delta":
			var delta OverviewDelta
			if err := json.Unmarshal(data, &delta); err != nil {
				return err
			}
			return take(nil, &delta)
		}
		return nil
	})
}

// maxEvent is how many bytes a line of a stream may have.
const maxEvent = 16 << 20

// follow reads a stream of server-sent events.
func (c *Client) follow(ctx context.Context, path string, take func(event string, data []byte) error) error {
	lasting, client := *c, http.Client{}
	if c.HTTP != nil {
		client = *c.HTTP
	}
	client.Timeout = 0 // a stream has no end
	lasting.HTTP = &client
	resp, err := lasting.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return c.problemIn(resp)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	event := ""
	for lines.Scan() {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(": "))
		switch string(name) {
		case "event":
			event = string(value)
		case "":
			if string(value) != following {
				continue
			}
			if err := take("open", nil); err != nil {
				return err
			}
		case "data":
			if err := take(event, value); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("ratelimit: the connection to the gateway is broken: %w", err)
	}
	return fmt.Errorf("ratelimit: the gateway has ended the stream")
}
