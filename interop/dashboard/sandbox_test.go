package dashboard_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A provider answers with a page whose script reads what the gateway knows of whoever is signed in. It is a page of the
// gateway's own origin, to which somebody has sent the holder of another key with a link.
func TestPagesOfProvidersReadNothing(t *testing.T) {
	t.Setenv("KEY_PAGE_TEST", "sk-test")
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "default-src * 'unsafe-inline'")
		io.WriteString(w, `<!doctype html><title>a page</title><h1>A page</h1><script>document.title = "the script runs"</script>`)
	}))
	t.Cleanup(provider.Close)
	r := start(t, strings.ReplaceAll(withKeys, "MOCK", provider.URL), "listen: 127.0.0.1:0")
	key := func(project string) string {
		return r.api(t, "POST", "/v1/keys", map[string]any{"project": project})["secret"].(string)
	}
	b := open(t, &rig{url: r.clients}, "/ratelimit", "sandbox", "blocked by CORS", "Failed to load resource", "401 (Unauthorized)")
	b.fill("key", key("acme/chat"))
	b.press("Sign in")
	b.shows("h1", "What is left")
	b.visit("/openai/v1/page?key=" + key("other"))
	b.shows("h1", "A page")
	if title := eval[string](b, `document.title`); title != "a page" {
		t.Errorf("the title is %q", title)
	}
	if me := eval[string](b, `fetch('/ratelimit/v1/me').then((r) => r.text(), (error) => 'nothing')`); me != "nothing" {
		t.Errorf("the page reads %q", me)
	}
}
