package admin

import (
	"context"
	"net/http"
	"net/url"
)

// Patch is a JSON merge patch, by the names that fields have in JSON: nil removes a field, and a field
// that is not there stays. See [ProjectSettings], [QuotaSettings], [KeySettings] and [control.Gateway].
type Patch map[string]any

// Subject is a kind of what a client can edit, by its name in the paths of the API.
type Subject string

// The subjects.
const (
	SubjectKey     Subject = "keys"
	SubjectModel   Subject = "quotas"
	SubjectProject Subject = "projects"
)

// Edit is a change of some fields of a project, a model or a key.
type Edit struct {
	Of            Subject
	Name          string // of the project or the model, or the id of the key
	Patch         Patch
	Until, Reason string // for how long the change holds, "reload", "forever" or a time such as "2h", and why it is made; may be empty
	DryRun        bool   // nothing is changed, and the answer is a [Preview]
}

// Apply makes a change. Its answer is what the change has made of the subject: a [Project], a [Model] or a [keys.Key].
func Apply[T any](ctx context.Context, c *Client, e Edit) (T, error) {
	dryRun := ""
	if e.DryRun {
		dryRun = "true"
	}
	path := "/v1/" + string(e.Of) + "/" + url.PathEscape(e.Name)
	if query := withValues("dry_run", dryRun, "until", e.Until, "reason", e.Reason); query != "" {
		path += "?" + query
	}
	return get[T](ctx, c, http.MethodPatch, path, e.Patch)
}

// Gateway returns what holds for the gateway as a whole.
func (c *Client) Gateway(ctx context.Context) (Gateway, error) {
	return get[Gateway](ctx, c, http.MethodGet, "/v1/gateway", nil)
}

// PatchGateway changes what holds for all gateways on the store.
func (c *Client) PatchGateway(ctx context.Context, p Patch) (Gateway, error) {
	return get[Gateway](ctx, c, http.MethodPatch, "/v1/gateway", p)
}
