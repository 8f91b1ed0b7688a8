package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/gateway/admin"
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

// run returns the function of a command that asks a gateway. An error says what the user can do
// about it.
func (a *adminFlags) run(ask func(c *cobra.Command, client *admin.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
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
