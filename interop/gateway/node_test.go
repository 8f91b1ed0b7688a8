package gateway_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// node is a script of Node.js that makes calls with an SDK, one after another. It is
// started by the first.
type node struct {
	script  string
	mu      sync.Mutex
	cmd     *exec.Cmd
	asks    io.WriteCloser
	answers *bufio.Reader
}

// nodes are the scripts that all tests share.
var nodes = map[string]*node{
	"openai":    {script: "openai.mjs"},
	"anthropic": {script: "anthropic.mjs"},
	"gemini":    {script: "gemini.mjs"},
	"mistral":   {script: "mistral.mjs"},
	"own":       {script: "mistralown.mjs"},
	"cohere":    {script: "cohere.mjs"},
}

// endNodes ends the scripts that all tests share, and the tests.
func endNodes(code int) {
	for _, n := range nodes {
		n.end()
	}
	os.Exit(code)
}

// do makes a call.
func (n *node) do(t *testing.T, k ask) (a answer) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		n.start(t)
	}
	if err := json.NewEncoder(n.asks).Encode(k); err != nil {
		t.Fatalf("%s has ended: %v; if it lacks its SDK: make deps", n.script, err)
	}
	line, err := n.answers.ReadBytes('\n')
	if err != nil {
		t.Fatalf("%s has ended: %v; if it lacks its SDK: make deps", n.script, err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		t.Fatalf("%s: %v: %s", n.script, err, line)
	}
	return a
}

func (n *node) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command("node", n.script)
	cmd.Stderr = os.Stderr
	asks, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: make deps", err)
	}
	n.cmd, n.asks, n.answers = cmd, asks, bufio.NewReader(answers)
}

// end ends the script, if it was started.
func (n *node) end() {
	if n.cmd != nil {
		n.asks.Close()
		n.cmd.Wait()
	}
}
