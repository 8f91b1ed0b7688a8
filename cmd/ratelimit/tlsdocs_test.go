package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// The example of TLS in docs/gateway.md works as it is written, except for the ports. In an
// earlier example the admin API had no TLS, so that its last command failed.
func TestDocumentedTLSExample(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SSL_CERT_FILE is for Linux and the BSDs")
	}
	dir, blocks := t.TempDir(), documented(t, "../../docs/gateway.md", "## TLS")
	if len(blocks) != 3 {
		t.Fatalf("%d blocks: want the file, and the commands of two terminals", len(blocks))
	}
	if err := os.WriteFile(filepath.Join(dir, "gateway.yaml"), []byte(blocks[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "HOME="+dir, "OPENAI_API_KEY=sk-test", "PATH="+filepath.Dir(buildProgram(t))+":"+os.Getenv("PATH"))
	stderr := new(testkit.Log)
	serve := exec.Command("sh", "-ec", strings.Replace(blocks[1], "ratelimit serve", "exec ratelimit serve", 1)) // so that the test kills the program, and not the shell
	serve.Dir, serve.Env, serve.Stderr = dir, environment, stderr
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer serve.Wait()
	defer serve.Process.Kill()
	stderr.Await(t, `openai +https`)

	commands := exec.Command("sh", "-ec", blocks[2])
	commands.Dir, commands.Env = dir, environment
	out, err := commands.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderr)
	}
	for _, want := range []string{"keys required", "rl-", `{"status":"ok"}`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
}

// documented returns the blocks of code in a section of a document, with free ports in place
// of those that it names.
func documented(t *testing.T, path, section string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), section+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	rest = strings.ReplaceAll(rest, "0.0.0.0", "127.0.0.1")
	for _, port := range []string{"8443", "8081"} {
		rest = strings.ReplaceAll(rest, ":"+port, ":"+testkit.NewPort(t).Number())
	}
	for _, found := range regexp.MustCompile("(?s)```(?:yaml|sh)\n(.*?)```").FindAllStringSubmatch(rest, -1) {
		blocks = append(blocks, found[1])
	}
	return blocks
}
