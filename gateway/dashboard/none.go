//go:build nodashboard

package dashboard

import "net/http"

// New returns nil: this build has no dashboard.
func New(string) http.Handler { return nil }
