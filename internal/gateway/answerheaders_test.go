package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// answering is an upstream that gives every request the same answer.
func answering(status int, header http.Header, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
}

// forwarded are requests whose answers are forwarded in different ways.
var forwarded = []struct{ method, path, body string }{
	{"POST", chat, `{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}`},
	{"POST", chat, `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"Hello"}]}`},
	{"GET", "/openai/v1/models", ""},
	{"GET", "/openai/v1/files/file-1/content", ""},
	{"POST", "/openai/v1/files", "x"},
}

// A browser runs nothing of what a provider has sent: it is in a sandbox, and of the type that it claims.
func TestAnswersAreSandboxed(t *testing.T) {
	for _, status := range []int{200, 400, 500} {
		evil := http.Header{
			"Content-Type": {"text/html"}, "Content-Security-Policy": {"default-src *", "script-src 'unsafe-inline'"}, "X-Content-Type-Options": {"none"},
			"Refresh": {"0; url=https://evil.example/"}, "Clear-Site-Data": {`"*"`}, "Service-Worker-Allowed": {"/"},
			"Nel": {`{"report_to":"evil","max_age":1000}`}, "Report-To": {`{}`}, "Reporting-Endpoints": {`evil="https://evil.example/"`},
		}
		r := newRigBefore(t, oneOfEach, answering(status, evil, "<script>fetch('/ratelimit/v1/me')</script>"))
		for _, f := range forwarded {
			a := r.do(t, f.method, f.path, f.body)
			got := fmt.Sprint(a.status, a.header["Content-Type"], a.header["Content-Security-Policy"], a.header["X-Content-Type-Options"])
			testkit.Equal(t, f.method+" "+f.path, fmt.Sprint(status, " [text/html] [sandbox] [nosniff]"), got)
			for _, name := range []string{"Refresh", "Clear-Site-Data", "Service-Worker-Allowed", "Nel", "Report-To", "Reporting-Endpoints"} {
				if a.header[name] != nil {
					t.Errorf("%s %s has %s", f.method, f.path, name)
				}
			}
		}
	}
}

// A provider cannot set the headers in which the gateway speaks for itself. Its own limits pass.
func TestProvidersDoNotSpeakForTheGateway(t *testing.T) {
	ours := []string{"X-Gateway-Request-Id", "X-Gateway-Tightest-Limit", "X-Gateway-Anything", "X-Ratelimit-Shadow", "X-Ratelimit-Fit", "Ratelimit", "Ratelimit-Policy"}
	header := http.Header{"X-Ratelimit-Remaining-Requests": {"7"}}
	for _, name := range ours {
		header[name] = []string{"forged"}
	}
	r := newRigBefore(t, oneOfEach+"projects: {limited: {requests_per_minute: 100}}\n", answering(200, header, "{}"))
	for _, project := range []string{"limited", "unlimited"} {
		for _, f := range forwarded {
			a := r.do(t, f.method, f.path, f.body, "X-Project-ID", project)
			for _, name := range ours {
				if strings.Contains(fmt.Sprint(a.header[name]), "forged") {
					t.Errorf("%s %s of %s: %s is the provider's", f.method, f.path, project, name)
				}
			}
			if a.header.Get("X-Ratelimit-Remaining-Requests") != "7" || !strings.HasPrefix(a.header.Get("X-Gateway-Request-Id"), "gw_") {
				t.Errorf("%s %s of %s: %v", f.method, f.path, project, a.header)
			}
		}
	}
}

// An address in an answer leads through the gateway, if it is one of the provider, or is not forwarded.
func TestLocationsOfProviders(t *testing.T) {
	for _, c := range []struct{ base, path, location, want string }{
		{"", "/openai/v1/models", "/v1/files/1", "/openai/v1/files/1"},
		{"", "/openai/v1/models", "files/1?a=b%20c#d", "/openai/v1/files/1?a=b%20c"},
		{"", "/openai/v1/models", "?a=b", "/openai/v1/models?a=b"},
		{"", "/openai/v1/models", "/v1/a%2fb", "/openai/v1/a%2fb"},
		{"", "/openai/v1/models", "MOCK/v1/files/1", "/openai/v1/files/1"},
		{"", "/openai/v1/models", "MOCK", "/openai"},
		{"/base", "/openai/v1/models", "MOCK/base/v1/files/1", "/openai/v1/files/1"},
		{"/base", "/openai/v1/models", "/base/v1/files/1", "/openai/v1/files/1"},
		{"/base", "/openai/v1/models", "/other/v1/files/1", ""},
		{"/base", "/openai/v1/models", "/based", ""},
		{"/base", "/openai/v1/models", "../../secret", ""},
		{"", "/openai/v1/models", "https://evil.example/v1", ""},
		{"", "/openai/v1/models", "//evil.example/v1", ""},
		{"", "/openai/v1/models", "MOCK.evil.example/v1", ""},
		{"", "/openai/v1/models", "javascript:alert(1)", ""},
		{"", "/openai/v1/models", "http://user@evil.example", ""},
		{"", "/openai/v1/models", "http://[::1", ""},
		{"", "/openai/v1/models", "/\\evil.example", "/openai/%5Cevil.example"},
	} {
		header := http.Header{}
		r := newRigBefore(t, strings.ReplaceAll(oneOfEach, "MOCK", "MOCK"+c.base), answering(302, header, ""))
		own := strings.TrimSuffix(r.setup.Load().upstreams["openai"].deployments[0].base.String(), c.base)
		header["Location"] = []string{strings.ReplaceAll(c.location, "MOCK", own)}
		header["Content-Location"] = header["Location"]
		req, _ := http.NewRequestWithContext(t.Context(), "GET", r.url+c.path, nil)
		response, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		for _, name := range []string{"Location", "Content-Location"} {
			if got := strings.Join(response.Header[name], ", "); got != c.want {
				t.Errorf("%s below %q: %s: %q: want %q", c.location, c.base, name, got, c.want)
			}
		}
	}
}
