//go:build !nodashboard

package dashboard

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fetch asks the dashboard for a file. Headers are given as names and values.
func fetch(t *testing.T, method, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	New("v1<2>").ServeHTTP(w, r)
	return w
}

func TestHeaders(t *testing.T) {
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/assets/app.js": "text/javascript; charset=utf-8", "/assets/favicon.svg": "image/svg+xml",
		"/assets/none.js": "text/plain; charset=utf-8",
	} {
		w := fetch(t, "GET", path)
		for name, want := range map[string]string{
			"Content-Type": kind, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin", "Content-Security-Policy": policy,
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q: want %q", path, name, got, want)
			}
		}
	}
	for _, source := range []string{"unsafe", "data:", "*", "http"} {
		if strings.Contains(policy, source) {
			t.Errorf("the policy allows %s", source)
		}
	}
}

func TestFiles(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/", 200}, {"HEAD", "/", 200}, {"POST", "/", 405}, {"DELETE", "/assets/app.js", 405},
		{"GET", "/assets/", 404}, {"GET", "/assets/index.html", 404}, {"GET", "/assets/../dashboard.go", 404}, {"GET", "/assets/app.js/", 404},
	} {
		if w := fetch(t, c.method, c.path); w.Code != c.want {
			t.Errorf("%s %s: %d: want %d", c.method, c.path, w.Code, c.want)
		}
	}
}

// A browser that has the file of this version gets no copy of it, and one that takes gzip gets the same text in less.
func TestCopies(t *testing.T) {
	plain := fetch(t, "GET", "/assets/app.js")
	etag := plain.Header().Get("ETag")
	if w := fetch(t, "GET", "/assets/app.js", "If-None-Match", etag); etag == "" || w.Code != 304 || w.Body.Len() > 0 {
		t.Errorf("with its ETag: %d, %d bytes", w.Code, w.Body.Len())
	}
	if w := fetch(t, "GET", "/assets/app.js", "If-None-Match", `W/"another"`); w.Code != 200 {
		t.Errorf("with another ETag: %d", w.Code)
	}
	if fetch(t, "GET", "/assets/api.js").Header().Get("ETag") == etag {
		t.Error("two files have the same ETag")
	}
	w := fetch(t, "GET", "/assets/app.js", "Accept-Encoding", "br, gzip")
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil || string(text) != plain.Body.String() || w.Header().Get("Vary") != "Accept-Encoding" {
		t.Error("gzipped, the file is another:", err, w.Header())
	}
}

// The whole dashboard has less than 150 KB on the wire.
func TestSize(t *testing.T) {
	total := 0
	for _, f := range files("v1") {
		total += len(f.gzipped())
	}
	sources, err := fs.Glob(embedded, "assets/*")
	if err != nil || len(sources) < 20 {
		t.Fatal(sources, err)
	}
	for _, name := range sources {
		if n := len(asset(path.Base(name))); n > 24<<10 {
			t.Errorf("%s has %d bytes: it is too long to read", name, n)
		}
	}
	t.Logf("all files have %d bytes on the wire", total)
	if total > 150_000 {
		t.Errorf("all files have %d bytes on the wire: they may have 150,000", total)
	}
}

// The page loads only files that are there, from here, and has no script or style in it but the style that the policy
// names.
func TestPage(t *testing.T) {
	page := fetch(t, "GET", "/")
	text := page.Body.String()
	inside := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindAllStringSubmatch(text, -1)
	if said := page.Header().Get("Content-Security-Policy"); len(inside) != 1 || !strings.Contains(said, "; style-src "+hashOf(inside[0][1])+";") {
		t.Errorf("the page has %d styles, and the policy is %s", len(inside), said)
	}
	if !strings.Contains(text, "ratelimit v1&lt;2&gt;") {
		t.Error("the version is not there, or not escaped")
	}
	references := regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(text, -1)
	if len(references) < 5 {
		t.Errorf("the page has %d references", len(references))
	}
	for _, found := range references {
		if w := fetch(t, "GET", found[1]); w.Code != 200 {
			t.Errorf("the page refers to %s: %d", found[1], w.Code)
		}
	}
	for _, bad := range []string{"<script>", "{{", "rel=\"stylesheet\"", " style=", "onclick", "javascript:"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
}

// The page has the theme that the viewer has chosen, and loads the scripts of the first page at once.
func TestThemes(t *testing.T) {
	for cookie, want := range map[string]string{
		"": `<html lang="en">`, "theme=system": `<html lang="en">`, "theme=light": `<html lang="en" data-theme="light">`,
		"theme=dark": `<html lang="en" data-theme="dark">`, `theme=dark"><script>`: `<html lang="en">`, "theme=/assets/app.js": `<html lang="en">`,
	} {
		w := fetch(t, "GET", "/", "Cookie", cookie)
		if !strings.Contains(w.Body.String(), want) || !slices.Equal(w.Header().Values("Vary"), []string{"Cookie", "Accept-Encoding"}) {
			t.Errorf("with %q there is no %s, or the headers are %v", cookie, want, w.Header())
		}
	}
	if w := fetch(t, "GET", "/light"); w.Code != 404 {
		t.Errorf("/light: %d", w.Code)
	}
	names := imported("app.js", "overview.js")
	for name, wanted := range map[string]bool{"app.js": true, "live.js": true, "row.js": true, "format.js": true, "matrix.js": false, "keys.js": false} {
		if slices.Contains(names, name) != wanted {
			t.Errorf("loaded at once are %v", names)
		}
	}
}

// Scripts import only files that are there, and never turn text into markup.
func TestScripts(t *testing.T) {
	all := files("v1")
	for path, f := range all {
		for _, found := range regexp.MustCompile(`(?:from |import |import\()'([^']+)'`).FindAllStringSubmatch(string(f.plain), -1) {
			if all["/assets/"+strings.TrimPrefix(found[1], "./")] == nil {
				t.Errorf("%s imports %s, which is not there", path, found[1])
			}
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"} {
			if strings.Contains(string(f.plain), bad) && !strings.Contains(path, ".svg") && !strings.Contains(string(f.plain), "http://www.w3.org/2000/svg") {
				t.Errorf("%s has %s", path, bad)
			}
		}
	}
}

func TestBuildsWithoutDashboard(t *testing.T) {
	vet := exec.Command("go", "vet", "-trimpath", "-tags", "nodashboard", ".")
	vet.Env = append(os.Environ(), "CGO_ENABLED=0") // as a release is built
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	list, err := exec.Command("go", "list", "-tags", "nodashboard", "-f", "{{.EmbedFiles}}", ".").Output()
	if err != nil || strings.TrimSpace(string(list)) != "[]" {
		t.Errorf("the build without a dashboard has the files %s %v", list, err)
	}
}
