// Package tokenizers holds the bound on prompts to real tokenizers: no text has more tokens than dialect.Request.Most says.
package tokenizers

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

var (
	texts = flag.Int("texts", 3000, "how many texts to count; from 10,000 on with Gemma's and Qwen's tokenizers, which take long to load")
	seed  = flag.Uint64("seed", 0, "makes the same texts again; 0: others each time")
)

// served is who serves the models of each tokenizer.
var served = map[string]dialect.Endpoint{
	"o200k": {Provider: dialect.OpenAI, API: dialect.Chat}, "cl100k": {Provider: dialect.Azure, API: dialect.Chat}, "claude": {Provider: dialect.Anthropic, API: dialect.Messages},
	"llama3": {Provider: dialect.Groq, API: dialect.Chat}, "llama2": {Provider: dialect.Compatible, API: dialect.Chat},
	"gemma": {Provider: dialect.Vertex, API: dialect.Chat}, "qwen": {Provider: dialect.OpenRouter, API: dialect.Chat},
}

// No prompt, and no text of it, has more tokens than the bound on it, whatever it is written in.
func TestTokensAreBounded(t *testing.T) {
	from := *seed
	if from == 0 {
		from = rand.Uint64()
	}
	n := startNode(t, *texts >= 10_000)
	random := rand.New(rand.NewPCG(from, 1))
	highest, counted := map[string]int{}, map[string]int{}
	done := 0
	for done < *texts {
		c := newChat(random)
		done += len(c.texts)
		for name, counts := range n.count(t, c.body()) {
			counted[name] += len(c.texts)
			for i, most := range append([]int{mostOf(t, served[name], c.body())}, c.bounds(t, served[name])...) {
				if counts[i] > most {
					t.Fatalf("-seed %d: %s counts %d tokens, and the bound is %d: %s", from, name, counts[i], most, c.body())
				}
				highest[name] = max(highest[name], 1000*counts[i]/max(most, 1))
			}
		}
	}
	t.Logf("texts counted: %v; thousandths of a bound that were used, at most: %v", counted, highest)
}

// mostOf returns the bound on the prompt of a body.
func mostOf(t *testing.T, e dialect.Endpoint, body string) int {
	t.Helper()
	r, err := e.Read([]byte(body))
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	most, _, ok := r.Most(llm.Maxima{Output: 1})
	if !ok {
		t.Fatalf("there is no bound: %s", body)
	}
	return most
}

// bounds returns the bound on each text alone: by how much it makes that on a prompt larger, and the two quotes around
// the text, which make up for a space that some tokenizers put before it.
func (c *chat) bounds(t *testing.T, e dialect.Endpoint) (all []int) {
	empty := mostOf(t, e, `{"messages":[{"role":"user","content":""}]}`)
	for _, text := range c.texts {
		all = append(all, mostOf(t, e, `{"messages":[{"role":"user","content":`+text+`}]}`)-empty+len(`""`))
	}
	return all
}

// node is the process that has the tokenizers.
type node struct {
	bodies io.Writer
	counts *bufio.Reader
}

func startNode(t *testing.T, all bool) *node {
	t.Helper()
	which := "some"
	if all {
		which = "all"
	}
	cmd := exec.Command("node", "tokenizers.mjs", which)
	bodies, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	counts, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errors := new(strings.Builder)
	cmd.Stderr = errors
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: make deps", err)
	}
	t.Cleanup(func() {
		bodies.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, errors)
		}
	})
	return &node{bodies, bufio.NewReader(counts)}
}

// count returns the tokens of a body's prompt and of each of its texts, by tokenizer.
func (n *node) count(t *testing.T, body string) (counts map[string][]int) {
	t.Helper()
	fmt.Fprintln(n.bodies, body)
	line, err := n.counts.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the tokenizers have ended: %v; if they are missing: make deps", err)
	}
	if err := json.Unmarshal(line, &counts); err != nil {
		t.Fatal(err)
	}
	return counts
}
