package gateway

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
)

// uploadToGemini uploads a file in pieces, and returns its name.
func (r *rig) uploadToGemini(t *testing.T, pieces ...string) string {
	t.Helper()
	const path = "/gemini/upload/v1beta/files"
	a := r.post(t, path, "{}", "X-Project-ID", "acme", "X-Goog-Upload-Protocol", "resumable", "X-Goog-Upload-Command", "start")
	to, ok := strings.CutPrefix(a.header.Get("X-Goog-Upload-Url"), r.url)
	if !ok {
		t.Fatalf("the address of the upload is %v", a.header)
	}
	offset := 0
	for i, piece := range pieces {
		command := "upload"
		if i == len(pieces)-1 {
			command = "upload, finalize"
		}
		a = r.post(t, to, piece, "X-Project-ID", "acme", "X-Goog-Upload-Command", command, "X-Goog-Upload-Offset", strconv.Itoa(offset), "Content-Type", "application/json")
		offset += len(piece)
	}
	_, name, _ := strings.Cut(a.body, `"name":"`)
	name, _, _ = strings.Cut(name, `"`)
	if a.status != http.StatusOK || name == "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return name
}

const geminiFileRig = `
providers: {gemini: {base_url: MOCK}}
prices: {gemini-t: {input: 1, output: 2, web_searches: 10, batch: 50%, context: 10_000}}
projects: {acme: {dollars: 1000}}
`

const geminiFilePath = "/gemini/v1beta/models/gemini-t:batchGenerateContent"

// The calls of a batch of Gemini's that are in a file are counted when the file is uploaded, reserved when the batch is
// submitted, and settled when its results are downloaded: also if the batch is submitted to another gateway, which
// shares the store.
func TestBatchOfGeminiInAFile(t *testing.T) {
	yaml := "state: " + filepath.Join(t.TempDir(), "state.db") + geminiFileRig
	r := newRig(t, yaml, mockprovider.Config{})
	other := newRigBefore(t, yaml, r.provider)
	line := `{"key":"k","request":{"contents":[{"parts":[{"text":"Hello"}]}],"generationConfig":{"maxOutputTokens":100},"tools":[{"googleSearch":{}}]}}` + "\n"
	whole := strings.Repeat(line, 3)
	for _, pieces := range [][]string{{whole}, {whole[:100], whole[100:101], whole[101:]}} {
		before := spentOf(t, r, "acme")
		file := r.uploadToGemini(t, pieces...)
		if spent := spentOf(t, r, "acme"); spent != before {
			t.Errorf("an upload costs %v", spent-before)
		}
		name := field(t, other.post(t, geminiFilePath, `{"batch":{"inputConfig":{"fileName":"`+file+`"}}}`, "X-Project-ID", "acme"), "name")
		if reserved := spentOf(t, r, "acme") - before; reserved < 3*(100*1000+10*10_000_000) {
			t.Errorf("%v are reserved", reserved)
		}
		a := r.do(t, "GET", "/gemini/v1beta/"+name, "", "X-Project-ID", "acme", "X-Mock", "web-searches=2")
		_, results, _ := strings.Cut(a.body, `"responsesFile":"`)
		results, _, _ = strings.Cut(results, `"`)
		a = r.do(t, "GET", "/gemini/v1beta/"+results+":download?alt=media", "", "X-Project-ID", "acme")
		if strings.Count(a.body, `"key":"k"`) != 3 {
			t.Errorf("the results are %s", a.body)
		}
	}
	total, got := r.provider.Totals()["gemini-t"], r.usage(t, books.Query{Project: "acme"}).Total
	want := int64(total.Input*500+total.Output*1000) + total.Units[llm.WebSearches]*10_000_000
	if int64(spentOf(t, r, "acme")) != want || got[books.Nanodollars] != want || got[books.Beside+llm.WebSearches] != 12 {
		t.Errorf("%v is spent and %v booked, want %d of %+v", spentOf(t, r, "acme"), got, want, total)
	}
}

// A file of which the gateway has not read every call is not known, and a batch with it is refused.
func TestFilesOfGeminiThatAreNotRead(t *testing.T) {
	r := newRig(t, geminiFileRig, mockprovider.Config{})
	const one = `{"request":{"contents":[{"parts":[{"text":"Hello"}]}]}}`
	for name, content := range map[string]string{
		"no JSON": "png", "a line that is no call": one + "\n{}\n", "two calls in a line": one + one, "cut off": one + "\n" + one[:20], "another model": strings.Replace(one, `{"contents"`, `{"model":"models/x","contents"`, 1),
		"two requests": strings.Replace(one, `{"request"`, `{"request":{},"request"`, 1), "a long line": one[:30] + strings.Repeat(" ", maxUploadLine) + one[30:],
	} {
		a := r.post(t, geminiFilePath, `{"batch":{"inputConfig":{"fileName":"`+r.uploadToGemini(t, content)+`"}}}`, "X-Project-ID", "acme")
		if a.status/100 != 4 || spentOf(t, r, "acme") != 0 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	a := r.post(t, geminiFilePath, `{"batch":{"inputConfig":{"fileName":"files/none"}}}`, "X-Project-ID", "acme")
	if a.status != http.StatusForbidden || !strings.Contains(a.body, "uploaded through the gateway") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A file that is replaced by another one of its name while the batch waits is not used.
func TestFileOfGeminiIsReplaced(t *testing.T) {
	provider := mockprovider.New(mockprovider.Config{})
	var asked atomic.Int32
	r := newRigBefore(t, geminiFileRig, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && asked.Add(1) == 2 {
			w.Write([]byte(`{"sha256Hash":"AAAA"}`))
			return
		}
		provider.ServeHTTP(w, r)
	}))
	file := r.uploadToGemini(t, `{"request":{"contents":[{"parts":[{"text":"Hello"}]}]}}`)
	a := r.post(t, geminiFilePath, `{"batch":{"inputConfig":{"fileName":"`+file+`"}}}`, "X-Project-ID", "acme")
	if a.status != http.StatusConflict || spentOf(t, r, "acme") != 0 {
		t.Errorf("%d %s; %v is spent", a.status, a.body, spentOf(t, r, "acme"))
	}
}

// A project that begins many uploads, or ends many, displaces none of a project that has fewer.
func TestUploadsOfOthers(t *testing.T) {
	var u uploads
	file := u.at("few", "a", true, nil)
	for i := range 3 * maxUploads {
		u.at("many", strconv.Itoa(i), true, nil)
	}
	if u.at("few", "a", false, nil) != file || len(u.open) != maxUploads || len(u.begun) != maxUploads {
		t.Errorf("%d uploads are open, %d have begun, and that of the other project is %p", len(u.open), len(u.begun), u.open["a"])
	}
	u.at("few", "a", true, nil)
	u.forget("a")
	if len(u.open) != maxUploads-1 || len(u.begun) != maxUploads-1 {
		t.Errorf("%d uploads are open, and %d have begun", len(u.open), len(u.begun))
	}
	var kept ownedNames
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		removed := kept.add([]string{"few", "many"}[min(i, 1)], name, 3)
		if want := []string{"", "", "", "b", "c"}[i]; removed != want {
			t.Errorf("for %q, %q is removed: want %q", name, removed, want)
		}
	}
}
