package main

import (
	"strings"
	"testing"
)

// A token with a role is made, used in place of the configured one, listed and revoked.
func TestTokens(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	serveWith(t, "--state", "memory", "--config", withMock(t, ""))
	made := run(t, "token", "create", "the wall", "--role", "viewer")
	secret := strings.TrimSpace(made.stdout)
	if made.code != exitFine || !strings.Contains(made.stderr, "(the wall), viewer of all projects, which does not expire; it is not shown again:") {
		t.Fatalf("%+v", made)
	}
	t.Setenv("RATELIMIT_ADMIN_TOKEN", secret)
	if got := run(t, "status"); got.code != exitFine {
		t.Errorf("a viewer sees nothing: %+v", got)
	}
	if got := run(t, "key", "create", "search"); got.code == exitFine || !strings.Contains(got.stderr, "needs the role operator: yours is viewer") {
		t.Errorf("a viewer makes a key: %+v", got)
	}
	t.Setenv("RATELIMIT_ADMIN_TOKEN", "")
	id := strings.Split(secret, "-")[1]
	if got := run(t, "token", "list"); !strings.Contains(got.stdout, id) || !strings.Contains(got.stdout, "the wall") || strings.Contains(got.stdout, secret) {
		t.Errorf("%+v", got)
	}
	if got := run(t, "token", "rotate", id); got.code != exitFine || strings.TrimSpace(got.stdout) == secret {
		t.Errorf("%+v", got)
	}
	if got := run(t, "token", "revoke", id, "--yes"); got.code != exitFine {
		t.Errorf("%+v", got)
	}
	if got := run(t, "token", "list"); strings.Contains(got.stdout, id) {
		t.Errorf("%+v", got)
	}
	if got := run(t, "token", "create", "x", "--role", "root"); got.code == exitFine || !strings.Contains(got.stderr, "one of metrics, viewer, operator, admin") {
		t.Errorf("%+v", got)
	}
}
