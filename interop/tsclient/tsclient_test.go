// Package tsclient_test makes TypeScript types of the admin API's document, as make client does, compiles a program that
// uses them, and runs it in Node.js against a gateway.
package tsclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/server"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

const yaml = `
listen: 127.0.0.1:0
state: memory
admin: {listen: "127.0.0.1:0", token: {env: TEST_ADMIN_TOKEN}}
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 1000}}}
defaults: {max_wait: 0s}
projects: {acme: {requests_per_day: 1000}}
`

// started runs a gateway until the test ends.
func started(t *testing.T) server.Running {
	t.Helper()
	provider := httptest.NewServer(mockprovider.New(mockprovider.Config{}))
	t.Cleanup(provider.Close)
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(yaml, "MOCK", provider.URL, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	running, ended := make(chan server.Running, 1), make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{
			Load:    func() (*config.Config, error) { return config.Load(file, config.Overrides{}) },
			Started: func(r server.Running) { running <- r },
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case r := <-running:
		return r
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return server.Running{}
	}
}

// withClient returns a folder with the types, with the program that uses them, and with one that makes mistakes.
func withClient(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range []string{"use.ts", "tsconfig.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wrong := `import createClient from "openapi-fetch";` + "\n" + `import type { paths } from "./ratelimit.js";` + "\nconst client = createClient<paths>();\n" + strings.Join(mistakes, "\n")
	if err := os.WriteFile(filepath.Join(folder, "mistakes.ts"), []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "package.json"), []byte(`{"type": "module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	node(t, "node_modules/openapi-typescript/bin/cli.js", "../../internal/gateway/admin/openapi.json", "-o", filepath.Join(folder, "ratelimit.ts"))
	return folder
}

// node runs a program in Node.js.
func node(t *testing.T, args ...string) {
	t.Helper()
	if said, err := exec.CommandContext(t.Context(), "node", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v; if it is missing: make deps\n%s", args, err, said)
	}
}

// compile compiles the programs in a folder, and returns the faults that the compiler finds.
func compile(t *testing.T, folder string) (faults string) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "node", "node_modules/typescript/bin/tsc", "-p", folder).CombinedOutput()
	if err == nil {
		t.Error("no mistake is found")
	}
	return string(text)
}

// mistakes are lines of programs that ask for what the API does not have.
var mistakes = []string{
	`client.POST("/v1/decide", { body: { model: 5 } });`,
	`client.POST("/v1/decide", { body: { tokens: 5 } });`,
	`client.GET("/v1/decisions", { params: { query: { outcome: 5 } } });`,
	`client.GET("/v1/nothing");`,
	`const n: number | undefined = (await client.GET("/v1/state")).data?.version; console.log(n);`,
}

// The client compiles in strict mode, mistakes in its use do not, and a program that uses it sees, asks and changes
// what it should.
func TestClient(t *testing.T) {
	token := strings.Repeat("t", 40)
	t.Setenv("TEST_ADMIN_TOKEN", token)
	folder, gateway := withClient(t), started(t)
	faults := compile(t, folder)
	if strings.Contains(faults, "use.ts") {
		t.Fatal(faults)
	}
	for i, mistake := range mistakes {
		if !strings.Contains(faults, fmt.Sprintf("mistakes.ts(%d,", i+4)) {
			t.Errorf("%s compiles: %s", mistake, faults)
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(folder, "use.js"), "http://"+gateway.Admin.String(), "http://"+gateway.Clients.String(), token)
	cmd.Stderr = os.Stderr
	said, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got, want map[string]any
	if err := json.Unmarshal(said, &got); err != nil {
		t.Fatalf("%s: %v", said, err)
	}
	if err := json.Unmarshal([]byte(`{
		"seen": "acme/search", "limit": 1, "statuses": [200, 429], "denied": ["denied"], "limits": ["project acme/search requests_per_minute"], "advice": true,
		"answer": false, "owner": "acme/search", "after": true, "waiting": 0, "project": "acme/search",
		"audit": ["project.change", "project.change", "project.reset", "project.reset", "key.create", "key.create", "key.revoke", "key.revoke"],
		"refused": {"status": 401, "detail": "this token is not valid: it is wrong, was revoked, or has expired"}
	}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
