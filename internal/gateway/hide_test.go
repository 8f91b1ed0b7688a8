package gateway

import (
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

const quotedKey = `sk-a/b+c"d&of-the-provider`

// quotes is a server that quotes the key of a request in the headers and the body of its
// answer. It sends the body in pieces that are cut in the middle of the key.
type quotes struct {
	status  int
	encoded string // the body's Content-Encoding, for which nobody has asked
}

func (q quotes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	h := w.Header()
	h.Set("X-Request-Id", "id-"+key)
	h.Set("Location", "/login?key="+url.QueryEscape(key))
	h.Add("X-Debug", "ok")
	h.Add("X-Debug", base64.StdEncoding.EncodeToString([]byte("user:"+key)))
	if q.encoded != "" {
		h.Set("Content-Encoding", q.encoded)
	}
	w.WriteHeader(q.status)
	if q.encoded == "gzip" {
		packed := gzip.NewWriter(w)
		defer packed.Close()
		fmt.Fprintf(packed, "the key is %s.", key)
		return
	}
	text := fmt.Sprintf("the key is %s.", key)
	for _, part := range []string{text[:12], text[12:20], text[20:]} {
		io.WriteString(w, part)
		http.NewResponseController(w).Flush()
	}
}

// The gateway's key is in no header of any answer, and in the body of no error.
func TestKeyIsInNoAnswer(t *testing.T) {
	t.Setenv("KEY", quotedKey)
	for _, q := range []quotes{
		{200, ""}, {201, ""}, {302, ""}, {307, ""}, {400, ""}, {401, ""}, {404, ""}, {429, ""}, {500, ""}, {503, ""}, {500, "gzip"}, {400, "br"},
	} {
		r := newRigBefore(t, "keys: required\nproviders: {openai: {base_url: MOCK, key: {env: KEY}}}\n", q)
		secret, _ := r.newKey(t, "p", "")
		want := "the key is ***."
		if q.encoded == "br" {
			want = ""
		}
		for path, body := range map[string]string{chat: hello, "/openai/v1/files": "x"} {
			a := r.without(t, path, body, "Bearer "+secret)
			testkit.Equal(t, fmt.Sprintf("the status of %v at %s", q, path), q.status, a.status)
			if q.status >= 300 {
				testkit.Equal(t, fmt.Sprintf("the body of %v at %s", q, path), want, a.body)
				testkit.Equal(t, fmt.Sprintf("the encoding of %v at %s", q, path), "", a.header.Get("Content-Encoding"))
			}
			if a.header.Get("X-Request-Id") != "id-***" || a.header.Get("Location") != "/openai/login?key=***" {
				t.Errorf("%v at %s: the headers are %v", q, path, a.header)
			}
			if got := a.header.Values("X-Debug"); len(got) != 2 || got[0] != "ok" || !strings.Contains(got[1], "***") {
				t.Errorf("%v at %s: base64 is %q", q, path, got)
			}
			if last := r.last(t); strings.Contains(fmt.Sprint(last), "sk-a") {
				t.Errorf("%v at %s: recorded as %+v", q, path, last)
			}
		}
	}
}

// without posts a body, and does not follow redirects.
func (r *rig) without(t *testing.T, path, body, authorization string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", authorization)
	response, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// However a body is cut into pieces, redacting removes every form of a secret, and nothing
// else.
func TestHidingAcrossPieces(t *testing.T) {
	h := newHider("aabaabaa-1", "zz\"/zzzz")
	for _, text := range []string{
		"", "a", "aabaabaa-", "aabaabaa-1", "aabaabaabaabaa-1", "aabaabaa-1aabaabaa-1", "x" + `zz\"\/zzzz` + "y zz%22%2Fzzzz aabaaba", strings.Repeat("aab", 3000) + "aa-1",
	} {
		want := text
		for _, needle := range h.needles {
			want = strings.ReplaceAll(want, needle, redacted)
		}
		for name, body := range map[string]io.Reader{
			"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)), "halves": iotest.HalfReader(strings.NewReader(text)),
			"with the end": iotest.DataErrReader(strings.NewReader(text)),
		} {
			got, err := io.ReadAll(&redactedBody{hider: h, body: body})
			if err != nil || string(got) != want {
				t.Errorf("%.60q in %s: %.60q, want %.60q, %v", text, name, got, want, err)
			}
		}
	}
	broken := &redactedBody{hider: h, body: io.MultiReader(strings.NewReader("it is aab"), iotest.ErrReader(io.ErrUnexpectedEOF))}
	if got, err := io.ReadAll(broken); string(got) != "it is aab" || err != io.ErrUnexpectedEOF {
		t.Errorf("what breaks off is %q, %v", got, err)
	}
}

// A key that is only a short word is not redacted, because that would garble answers.
func TestShortKeysAreNotHidden(t *testing.T) {
	if newHider("none") != nil || newHider("") != nil {
		t.Error("a word is hidden")
	}
}
