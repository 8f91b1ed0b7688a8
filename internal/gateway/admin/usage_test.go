package admin

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

func TestUsage(t *testing.T) {
	r := newRig(t, usual)
	send := func(project string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.clients+"/openai/v1/chat/completions",
			strings.NewReader(`{"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Project-ID", project)
		response, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	for range 3 {
		send("search")
	}
	send("search/alice")
	testkit.Eventually(t, "no request is being served", func() bool { return r.gateway.Active() == 0 })
	got := as[UsageReport](t, r.get(t, "/v1/usage?by=project,model,day&project=search&since=24h"))
	if len(got.Rows) != 2 || got.Total.Requests != 4 || got.Total.Input == 0 || got.Total.Output == 0 {
		t.Fatalf("%+v", got)
	}
	first, second := got.Rows[0], got.Rows[1]
	if first.Project != "search" || first.Model != "openai/gpt-4o" || first.Requests != 3 || first.Time.IsZero() || second.Project != "search/alice" || second.Requests != 1 {
		t.Errorf("%+v", got.Rows)
	}
	if sum := first.Input + second.Input; sum != got.Total.Input {
		t.Errorf("the rows have %d tokens of input, all have %d", sum, got.Total.Input)
	}
	all := as[UsageReport](t, r.get(t, "/v1/usage"))
	if len(all.Rows) != 1 || len(all.By) != 0 || all.Rows[0].UsageSum != all.Total || all.Until.Sub(all.Since).Hours() != 30*24 {
		t.Errorf("%+v", all)
	}
	client := &Client{Base: r.url, HTTP: r.client}
	asked, err := client.Usage(t.Context(), books.Query{Since: got.Since.Unix(), Project: "search", By: []books.Dimension{books.ByProject}, Depth: 1})
	if err != nil || len(asked.Rows) != 1 || asked.Rows[0].Requests != 4 {
		t.Errorf("%+v, %v", asked, err)
	}
	answer := r.get(t, "/v1/usage?by=project,day&project=search&format=csv")
	today := first.Time.Format(time.DateOnly)
	lines := strings.Split(answer.text, "\n")
	if !strings.HasPrefix(lines[0], "project,day,requests,input_tokens,") || !strings.HasPrefix(lines[1], "search,"+today+",3,") || len(lines) != 4 {
		t.Errorf("as CSV: %q", lines)
	}
	if kind, name := answer.header.Get("Content-Type"), answer.header.Get("Content-Disposition"); kind != "text/csv; charset=utf-8" || name != `attachment; filename="usage.csv"` {
		t.Errorf("CSV is %s, %s", kind, name)
	}
	past := as[UsageReport](t, r.get(t, "/v1/usage?since=2020-01-01&until=2020-02-01&by=hour"))
	if len(past.Rows) != 0 || past.Total != (UsageSum{}) {
		t.Errorf("%+v", past)
	}
}

func TestBadUsage(t *testing.T) {
	r := newRig(t, usual)
	for query, want := range map[string]string{
		"by=weather":                        `usage by "weather": it can be grouped by project, model, key, hour, day`,
		"by=hour,day":                       "it can be grouped by one of them",
		"since=yesterday":                   `"yesterday" is no time: it must be a date such as 2026-11-01`,
		"until=2026-02-30":                  "is no time",
		"since=2026-11-02&until=2026-11-01": "until must be later than since",
		"depth=1":                           "the usage is not grouped by project",
		"by=project&depth=many":             `a depth of "many"`,
		"format=xls":                        `format is "xls": it must be json or csv`,
		"limit=5":                           "unknown parameter",
		"since=24h&since=7d":                "it may be there once",
	} {
		a := r.want(t, 400, "GET", "/v1/usage?"+query, "")
		if p := as[Problem](t, a); !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %s", query, p.Detail)
		}
	}
	off := newRig(t, usual+"usage: off\n")
	off.want(t, 404, "GET", "/v1/usage", "")
}
