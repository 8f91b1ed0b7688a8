package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// The environment variables of the commands that ask a gateway.
const (
	adminVariable = "RATELIMIT_ADMIN"
	tokenVariable = "RATELIMIT_ADMIN_TOKEN"
)

const defaultAdmin = "http://127.0.0.1:8081"

// adminFlags says how to reach the admin API of a gateway.
type adminFlags struct {
	base     string
	tokenEnv string
}

func (a *adminFlags) flags(c *cobra.Command) {
	c.PersistentFlags().StringVar(&a.base, "admin", "", "ask the admin API at `URL` (default $"+adminVariable+", or "+defaultAdmin+")")
	c.PersistentFlags().StringVar(&a.tokenEnv, "token-env", tokenVariable, "read the admin API's token from the variable `NAME`")
}

// client returns a client of the admin API that the command line or the environment names.
func (a *adminFlags) client() (*admin.Client, error) {
	base := cmp.Or(a.base, os.Getenv(adminVariable), defaultAdmin)
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, usageError{fmt.Errorf("the address of the admin API must be one such as %s", defaultAdmin)}
	}
	return &admin.Client{Base: base, Token: os.Getenv(a.tokenEnv)}, nil
}

// patience is how long a command waits for an answer.
const patience = 30 * time.Second

// slowly is a transport that shows on a terminal that an answer takes long.
type slowly struct {
	to   *console.Writer
	base string
}

// RoundTrip implements [http.RoundTripper]. The beginning of a stream is an answer.
func (s slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	end := sync.OnceFunc(s.to.Progress("waiting for the gateway at " + s.base))
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		end()
		return resp, err
	}
	resp.Body = ending{resp.Body, end}
	return resp, nil
}

// ending is a body that calls a function at its end.
type ending struct {
	io.ReadCloser
	end func()
}

func (e ending) Close() error {
	e.end()
	return e.ReadCloser.Close()
}

// run returns the function of a command that asks a gateway. An error says what the user can do
// about it.
func (a *adminFlags) run(ask func(c *cobra.Command, client *admin.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		client.HTTP = &http.Client{Timeout: patience, Transport: slowly{console.Of(c.ErrOrStderr()), client.Base}}
		err = ask(c, client, args)
		if connection, ok := errors.AsType[*net.OpError](err); ok && connection.Op == "dial" {
			return fmt.Errorf("no gateway answers at %s: start one with `ratelimit serve`", client.Base)
		}
		if problem, ok := errors.AsType[*admin.Problem](err); ok && problem.Status == http.StatusUnauthorized {
			return fmt.Errorf("%w: put the token into the variable %s", err, a.tokenEnv)
		}
		return err
	}
}
