//go:build !nodashboard

package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Included says whether this build has the dashboard.
const Included = true

//go:embed assets
var embedded embed.FS

// policyOf returns a policy that lets the page load its own files and call its own origin, and nothing else, but for the one
// style and the one script that are in the page itself: these are named by their hashes. Scripts cannot turn text into markup.
func policyOf(style, script string) string {
	return "default-src 'none'; script-src 'self' " + hashOf(script) + "; style-src 'self' " + hashOf(style) + "; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

// hashOf returns a text as a policy names it.
func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}

// style and theme are in the page itself, so that the first paint waits for nothing but the page.
var style, theme = asset("base.css") + asset("page.css"), asset("theme.js")

var policy = policyOf(style, theme)

// asset returns the text of a file.
func asset(name string) string {
	text, err := embedded.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // embedded files can be read
	}
	return string(text)
}

// file is a file as clients get it.
type file struct {
	kind    string
	etag    string
	plain   []byte
	gzipped func() []byte // compressed when it is first asked for
}

// New returns the handler of the dashboard, which serves / and /assets/.
func New(version string) http.Handler {
	load := sync.OnceValue(func() map[string]*file { return files(version) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		f := load()[r.URL.Path]
		switch {
		case f == nil:
			http.Error(w, "there is no such file", http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "the method must be GET or HEAD", http.StatusMethodNotAllowed)
		default:
			f.serve(w, r)
		}
	})
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache") // a browser asks whether its copy is current: another version may run here next
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.etag)
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.gzipped()
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// files returns all files by their paths.
func files(version string) map[string]*file {
	all := map[string]*file{"/": newFile("index.html", render(asset("index.html"), version))}
	for _, name := range append(scripts(), "favicon.svg") {
		all["/assets/"+name] = newFile(name, []byte(asset(name)))
	}
	return all
}

// scripts returns the names of the modules that the page loads.
func scripts() []string {
	names, _ := fs.Glob(embedded, "assets/*.js") // the pattern is valid
	for i, name := range names {
		names[i] = path.Base(name)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "theme.js" })
}

// render fills the page in: with the version, the style, the theme, and the scripts, which the browser then loads at once,
// before it finds out what imports them.
func render(text, version string) []byte {
	var preload strings.Builder
	for _, name := range scripts() {
		preload.WriteString("<link rel=\"modulepreload\" href=\"/assets/" + name + "\">\n")
	}
	return []byte(strings.NewReplacer("{{style}}", style, "{{theme}}", theme, "{{scripts}}", preload.String(), "{{version}}", html.EscapeString(version)).Replace(text))
}

func newFile(name string, text []byte) *file {
	hash := sha256.Sum256(text)
	return &file{
		kind:    mime.TypeByExtension(path.Ext(name)),
		etag:    `W/"` + base64.RawURLEncoding.EncodeToString(hash[:12]) + `"`, // weak: gzipped or not
		plain:   text,
		gzipped: sync.OnceValue(func() []byte { return compress(text) }),
	}
}

func compress(text []byte) []byte {
	var zipped bytes.Buffer
	z, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // the level is valid
	z.Write(text)                                              // a buffer takes everything
	z.Close()
	return zipped.Bytes()
}
