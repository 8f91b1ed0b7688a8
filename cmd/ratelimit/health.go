package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

func newHealth() *cobra.Command {
	return &cobra.Command{
		Use:   "health [ADDRESS]",
		Short: "Ask whether a gateway serves, for the health checks of containers",
		Long: `Ask whether a gateway serves at an address, for the health checks of containers. It asks where
clients connect, with or without TLS, so it needs no token, no certificate and no admin API.
If the gateway does not serve, the exit code is 1. A gateway that has lost its store serves:
` + "`ratelimit status`" + ` says whether it is ready.`,
		Example: "  ratelimit health\n  ratelimit health 127.0.0.1:8443",
		Args:    arguments,
		RunE: func(c *cobra.Command, args []string) error {
			address := "127.0.0.1:8080"
			if len(args) > 0 {
				address = args[0]
			}
			ctx, cancel := context.WithTimeout(c.Context(), 3*time.Second)
			defer cancel()
			return askHealth(ctx, address)
		},
	}
}

// askHealth returns nil if a gateway serves at an address, with or without TLS. It accepts any certificate, because it
// sends nothing that is secret, and certificates seldom have the name of the container itself.
func askHealth(ctx context.Context, address string) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	var found error
	for _, scheme := range []string{"http", "https"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+"/healthz", nil)
		if err != nil {
			return usageError{fmt.Errorf("%q is not an address: %w", address, err)}
		}
		answer, err := transport.RoundTrip(request)
		if err != nil {
			found = cmp.Or(found, fmt.Errorf("no gateway serves at %s: %w", address, err))
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return nil
		}
		found = fmt.Errorf("%s answers %s, which no gateway does", request.URL, answer.Status)
	}
	return found
}
