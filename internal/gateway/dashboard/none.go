//go:build nodashboard

package dashboard

import "net/http"

// Included says whether this build has the dashboard.
const Included = false

// New returns nil: this build has no dashboard.
func New(string) http.Handler { return nil }
