package gateway

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// Below a path of the provider's base_url, too, the address of a batch's results leads through the gateway: SDKs add it
// to their base URL, which ends with the provider's name.
func TestResultsURLBelowABasePath(t *testing.T) {
	r := newRig(t, strings.Replace(batchRig, "anthropic: {base_url: MOCK}", "anthropic: {base_url: MOCK/relay/eu}", 1), mockprovider.Config{})
	body := `{"requests":[{"custom_id":"a","params":{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}}]}`
	id := field(t, r.post(t, "/anthropic/v1/messages/batches", body, "X-Project-ID", "acme"), "id")
	a := r.do(t, "GET", "/anthropic/v1/messages/batches/"+id, "", "X-Project-ID", "acme")
	if got, want := field(t, a, "results_url"), "/v1/messages/batches/"+id+"/results"; got != want {
		t.Fatalf("the results are at %q, want %q", got, want)
	}
	if a := r.do(t, "GET", "/anthropic"+field(t, a, "results_url"), "", "X-Project-ID", "acme"); a.status != 200 || !r.noBatches(t) {
		t.Errorf("the results: %d %s", a.status, a.body)
	}
}

// The address to which a client of Google's sends a file is one of the gateway, which takes the file there. One of
// another server is dropped.
func TestUploadURL(t *testing.T) {
	for _, base := range []string{"MOCK", "MOCK/google"} {
		r := newRig(t, "providers: {gemini: {base_url: "+base+"}}", mockprovider.Config{})
		start := []string{"X-Goog-Upload-Protocol", "resumable", "X-Goog-Upload-Command", "start", "X-Goog-Upload-Header-Content-Length", "5"}
		a := r.post(t, "/gemini/upload/v1beta/files", `{"file":{}}`, start...)
		address := a.header.Get("X-Goog-Upload-Url")
		if want := r.url + "/gemini/upload/v1beta/files?upload_id="; a.status != 200 || !strings.HasPrefix(address, want) {
			t.Fatalf("%d: the file is to be sent to %q, want %q", a.status, address, want)
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		a = r.post(t, u.RequestURI(), "Hello", "X-Goog-Upload-Command", "upload, finalize", "X-Goog-Upload-Offset", "0")
		if a.status != 200 || a.header.Get("X-Goog-Upload-Status") != "final" || !strings.Contains(a.body, `"sizeBytes":"5"`) {
			t.Errorf("the upload: %d %s", a.status, a.body)
		}
		if a = r.post(t, "/gemini/upload/v1beta/files", `{}`, append(start, "X-Forwarded-Proto", "https")...); !strings.HasPrefix(a.header.Get("X-Goog-Upload-Url"), "https://") {
			t.Errorf("behind a proxy with TLS, the file is to be sent to %q", a.header.Get("X-Goog-Upload-Url"))
		}
	}
	r := newRigBefore(t, "providers: {gemini: {base_url: MOCK}}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Goog-Upload-Url", "https://uploads.example.com/upload?upload_id=1")
	}))
	if a := r.post(t, "/gemini/upload/v1beta/files", `{}`); a.header["X-Goog-Upload-Url"] != nil {
		t.Errorf("the client is sent to %q", a.header["X-Goog-Upload-Url"])
	}
}
