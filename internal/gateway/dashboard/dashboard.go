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
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Included says whether this build has the dashboard.
const Included = true

//go:embed assets
var embedded embed.FS

// policy lets the page load its own files and call its own origin, and nothing else, but for the style in the page,
// which is named by its hash. Scripts cannot turn text into markup.
var policy = "default-src 'none'; script-src 'self'; style-src " + hashOf(style) + "; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// style is in the page itself, so that the first paint waits for nothing but the page.
var style = asset("base.css") + asset("page.css")

// hashOf returns a text as a policy names it.
func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}

// asset returns the text of a file.
func asset(name string) string {
	if name == kindsFile {
		return kindsScript()
	}
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
		name := r.URL.Path
		if name == "/" {
			h.Add("Vary", "Cookie")
			name = themeOf(r)
		}
		f := load()[name]
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

// themes are what a viewer may have chosen. The first is that of the viewer's system.
var themes = []string{"system", "light", "dark"}

// themeOf returns the theme that a viewer has chosen. It is in a cookie: a script would have to ask the browser for it
// before the first paint.
func themeOf(r *http.Request) string {
	if c, err := r.Cookie("theme"); err == nil && slices.Contains(themes, c.Value) {
		return c.Value
	}
	return themes[0]
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache") // a browser asks whether its copy is current: another version may run here next
	h.Add("Vary", "Accept-Encoding")
	h.Set("ETag", f.etag)
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.gzipped()
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// files returns all files by their paths, and the page by its themes.
func files(version string) map[string]*file {
	all := map[string]*file{}
	for _, theme := range themes {
		all[theme] = newFile("index.html", render(asset("index.html"), version, theme))
	}
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
	return append(names, kindsFile)
}

// imports finds the modules that a module always loads.
var imports = regexp.MustCompile(`(?m)^(?:import|export) .*'\./([^']+)';$`)

// imported returns some modules and all that they import.
func imported(names ...string) []string {
	for i := 0; i < len(names); i++ {
		for _, found := range imports.FindAllStringSubmatch(asset(names[i]), -1) {
			if !slices.Contains(names, found[1]) {
				names = append(names, found[1])
			}
		}
	}
	return names
}

// render fills the page in: with the version, the style, the theme, and the scripts of the first page, which the
// browser then loads at once, before it finds out what imports them.
func render(text, version, theme string) []byte {
	var preload strings.Builder
	for _, name := range imported("app.js", "overview.js") {
		preload.WriteString("<link rel=\"modulepreload\" href=\"/assets/" + name + "\">\n")
	}
	chosen := ""
	if theme != themes[0] {
		chosen = ` data-theme="` + theme + `"`
	}
	return []byte(strings.NewReplacer("{{style}}", style, "{{theme}}", chosen, "{{scripts}}", preload.String(), "{{version}}", html.EscapeString(version)).Replace(text))
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
