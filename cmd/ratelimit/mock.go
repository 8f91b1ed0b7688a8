package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
)

// mockFlags is what the flags of mock say.
type mockFlags struct {
	listen string
	limits []string // such as gpt-6-luna=requests:100,tokens:5000
	delay  time.Duration
	output int
	asJSON bool
}

func newMock() *cobra.Command {
	var m mockFlags
	c := &cobra.Command{
		Use:   "mock",
		Short: "Run a provider that costs nothing, for tests",
		Long: `Run a provider that costs nothing, for tests: it answers at the paths of OpenAI, Anthropic,
Gemini, Azure, Bedrock, Cohere, Mistral, Groq, OpenRouter and Ollama as these do, streams
too, and needs no key. A header of a call says how it is answered:

  X-Mock: output=200 reasoning=50 cached=30
  X-Mock: status=429 retry-after=2s
  X-Mock: fault=reset after=5 delay=20ms

When Ctrl-C ends it, it prints what each model has counted: compare that with what your
client has.`,
		Example: `  ratelimit mock
  ratelimit mock --listen 127.0.0.1:0 --limit gpt-6-luna=requests:100,tokens:5000 --delay 50ms
  curl http://127.0.0.1:8090/v1/chat/completions -d '{"model":"m","messages":[{"role":"user","content":"hi"}]}'`,
		Args:    arguments,
		PreRunE: noEmptyFlags,
		RunE:    func(c *cobra.Command, _ []string) error { return m.run(c) },
	}
	f := c.Flags()
	f.StringVar(&m.listen, "listen", "127.0.0.1:8090", "serve at this `ADDRESS`")
	f.StringArrayVar(&m.limits, "limit", nil, "a limit of a model for each minute, such as `MODEL=requests:100`; also tokens, input, output")
	f.DurationVar(&m.delay, "delay", 0, "how long it takes before an answer, and before each part of a stream")
	f.IntVar(&m.output, "output", 16, "how many tokens an answer has, if no header says so")
	f.BoolVar(&m.asJSON, "json", false, "print the counts at the end as JSON")
	return c
}

// run serves until the context ends.
func (m *mockFlags) run(c *cobra.Command) error {
	limits, err := mockLimits(m.limits)
	if err == nil && (m.output < 1 || m.delay < 0) {
		err = errors.New("--output must be 1 or more, and --delay 0 or more")
	}
	if err != nil {
		return usageError{err}
	}
	provider := mockprovider.New(mockprovider.Config{Limits: limits, Delay: m.delay, Script: func(call mockprovider.Call) mockprovider.Reply {
		reply := mockprovider.FromHeader(call)
		if call.Header.Get("X-Mock") == "" {
			reply.Output = m.output
		}
		return reply
	}})
	listener, err := net.Listen("tcp", m.listen)
	if err != nil {
		return fmt.Errorf("cannot listen at %s: %w", m.listen, err)
	}
	base := "http://" + listener.Addr().String()
	fmt.Fprintf(c.ErrOrStderr(), "a mock provider serves %s\n  OPENAI_BASE_URL=%s/v1\n  ANTHROPIC_BASE_URL=%s\n  GOOGLE_GEMINI_BASE_URL=%s\n", base, base, base, base)
	server := &http.Server{Handler: provider, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return c.Context() }}
	stop := context.AfterFunc(c.Context(), func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return m.report(console.Of(c.OutOrStdout()), provider.Totals())
}

// mockLimits reads the limits of models.
func mockLimits(texts []string) (map[string]mockprovider.Limit, error) {
	limits := map[string]mockprovider.Limit{}
	for _, text := range texts {
		model, amounts, _ := strings.Cut(text, "=")
		var l mockprovider.Limit
		fields := map[string]*int{"requests": &l.Requests, "tokens": &l.Tokens, "input": &l.InputTokens, "output": &l.OutputTokens}
		for part := range strings.SplitSeq(amounts, ",") {
			name, value, _ := strings.Cut(part, ":")
			n, err := strconv.Atoi(strings.ReplaceAll(value, "_", ""))
			if model == "" || fields[name] == nil || err != nil || n < 1 {
				return nil, fmt.Errorf("--limit is %q: it must be one such as gpt-6-luna=requests:100,tokens:5000; also input and output", text)
			}
			*fields[name] = n
		}
		limits[model] = l
	}
	return limits, nil
}

// report prints what the models have counted.
func (m *mockFlags) report(w *console.Writer, all map[string]mockprovider.Totals) error {
	if m.asJSON {
		return w.JSON(all)
	}
	if len(all) == 0 {
		return w.Lines([]string{"no model was called"})
	}
	t := console.NewTable(console.Text("model").Shortened(20), console.Number("answered"), console.Number("refused"), console.Number("input"), console.Number("cached"),
		console.Number("output"), console.Number("reasoning").Leaves(1))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		row := []string{name}
		for _, n := range []int{all[name].Requests, all[name].Refused, all[name].Input, all[name].Cached, all[name].Output, all[name].Reasoning} {
			row = append(row, numeral.Grouped(int64(n)))
		}
		t.Add(row...)
	}
	return w.Lines(t.Lines(w.Columns()))
}
