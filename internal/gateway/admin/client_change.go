package admin

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/project"
)

// Patch is a JSON merge patch, by the names that fields have in JSON: nil removes a field, and a field
// that is not there stays. See [ProjectSettings], [QuotaSettings], [KeySettings] and [GatewaySettings].
type Patch map[string]any

// PatchProject changes what a project has.
func (c *Client) PatchProject(ctx context.Context, id string, p Patch) (Project, error) {
	return get[Project](ctx, c, http.MethodPatch, c.changing(projectPath(id)), p)
}

// PreviewProject returns what PatchProject would change.
func (c *Client) PreviewProject(ctx context.Context, id string, p Patch) (Preview, error) {
	return get[Preview](ctx, c, http.MethodPatch, c.changing(projectPath(id)+"?dry_run=true"), p)
}

// SetProject replaces the limit of a project. Without replace, it fails with a [*Problem] of the status 409
// if that would remove limits.
func (c *Client) SetProject(ctx context.Context, id string, limit project.Limit, replace bool) (Project, error) {
	return get[Project](ctx, c, http.MethodPut, c.changing(projectPath(id)+replaceQuery(replace)), limit)
}

// PatchQuota changes what a model has.
func (c *Client) PatchQuota(ctx context.Context, model string, p Patch) (Model, error) {
	return get[Model](ctx, c, http.MethodPatch, c.changing(quotaPath(model)), p)
}

// PreviewQuota returns what PatchQuota would change.
func (c *Client) PreviewQuota(ctx context.Context, model string, p Patch) (Preview, error) {
	return get[Preview](ctx, c, http.MethodPatch, c.changing(quotaPath(model)+"?dry_run=true"), p)
}

// SetQuota replaces the quota of a model, as SetProject does the limit of a project.
func (c *Client) SetQuota(ctx context.Context, model string, q Quota, replace bool) (Model, error) {
	return get[Model](ctx, c, http.MethodPut, c.changing(quotaPath(model)+replaceQuery(replace)), q)
}

// PatchKey changes what a key has.
func (c *Client) PatchKey(ctx context.Context, id string, p Patch) (keys.Key, error) {
	return get[keys.Key](ctx, c, http.MethodPatch, c.changing("/v1/keys/"+url.PathEscape(id)), p)
}

// Gateway returns what holds for the gateway as a whole.
func (c *Client) Gateway(ctx context.Context) (Gateway, error) {
	return get[Gateway](ctx, c, http.MethodGet, "/v1/gateway", nil)
}

// PatchGateway changes what holds for all gateways on the store.
func (c *Client) PatchGateway(ctx context.Context, p Patch) (Gateway, error) {
	return get[Gateway](ctx, c, http.MethodPatch, "/v1/gateway", p)
}

func projectPath(id string) string { return "/v1/projects/" + url.PathEscape(id) }

func quotaPath(model string) string { return "/v1/quotas/" + url.PathEscape(model) }

func replaceQuery(replace bool) string {
	if replace {
		return "?replace=true"
	}
	return ""
}

// SetTerm sets for how long the changes of this client hold, "reload", "forever" or a time such as "2h", and why they are
// made. Both may be empty.
func (c *Client) SetTerm(until, reason string) { c.until, c.reason = until, reason }

// changing returns the path of a change with its term.
func (c *Client) changing(path string) string {
	term := withValues("until", c.until, "reason", c.reason)
	switch {
	case term == "":
		return path
	case strings.Contains(path, "?"):
		return path + "&" + term
	}
	return path + "?" + term
}
