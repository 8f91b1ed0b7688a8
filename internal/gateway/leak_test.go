package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// escapes returns a text with every byte escaped as in URLs.
func escapes(text string) string {
	var all strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&all, "%%%02X", text[i])
	}
	return all.String()
}

// leak is a request with a virtual key in an unusual part of it.
type leak struct {
	path, body string
	headers    []string
	status     int // where keys are required
}

func leaks(key string) []leak {
	files := "/openai/v1/files"
	return []leak{
		{chat + "?api_key=" + key, hello, nil, 200},
		{chat + "?a=1&x=" + url.QueryEscape(key) + "&b=2", hello, nil, 200},
		{chat + "?a=1&x=" + escapes(key) + "&b=2", hello, nil, 200},
		{chat + "?x=" + escapes(escapes("to:"+key+"!")) + "&b=2", hello, nil, 200},
		{chat + "?" + key, hello, nil, 200},
		{files + "?api_key=" + key, "x", nil, 200},
		{chat, hello, []string{"Referer", "https://x.example/?key=" + key + "#top"}, 200},
		{chat, hello, []string{"Referer", "https://x.example/?key=" + escapes(key)}, 200},
		{chat, hello, []string{"X-Unknown", "1", "X-Unknown", "token=" + key}, 200},
		{files, "x", []string{"User-Agent", "tool (" + key + ")"}, 200},
		{chat, hello, []string{"X-Project-ID", key}, 200},
		{chat, hello, []string{key, "1"}, 200},
		{"/openai/" + key + "/chat/completions", hello, nil, 400},
		{"/openai/v1/" + escapes(escapes(key)), hello, nil, 400},
		{"/" + key + "/v1/chat/completions", hello, nil, 400},
		{"/openai/" + strings.Repeat("a", 220) + key, "", nil, 400}, // a record would cut the path in the middle of the key
		{chat, strings.Replace(hello, "Hello", "my key is "+key+", a url-one", 1), nil, 400},
		{chat, strings.Replace(hello, "gpt-4o", key, 1), nil, 400},
		{chat, strings.Replace(hello, "gpt-4o", testkit.Forged(key), 1), nil, 400}, // has the form of a key, but is none
	}
}

// No provider and no record, which the log and the metrics come from, gets a virtual key,
// whichever part of a request it is in.
func TestVirtualKeysLeaveNowhere(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-of-the-provider")
	for _, mode := range []string{config.KeysRequired, config.KeysOff} {
		upstream := newSeen()
		r := newRigBefore(t, strings.Replace(withKeys, "required", mode, 1), upstream)
		key, _ := r.newKey(t, "search", "")
		for _, c := range leaks(key) {
			headers, want := c.headers, c.status
			if mode == config.KeysRequired {
				headers = append(headers, "Authorization", "Bearer "+key)
			} else if want == 200 {
				want = http.StatusUnauthorized
			}
			a := r.post(t, c.path, c.body, headers...)
			if a.status != want {
				t.Errorf("%s: %.120s %q: %d %s", mode, c.path, c.headers, a.status, a.body)
			}
			if shown := fmt.Sprint(r.last(t)); strings.Contains(shown, key[14:30]) {
				t.Errorf("%s: %.120s %q: recorded as %s", mode, c.path, c.headers, shown)
			}
			if a.status != 200 {
				continue
			}
			got, body := <-upstream.requests, <-upstream.bodies
			if sent := unescaped(unescaped(fmt.Sprint(got.URL, got.Header, body))); strings.Contains(strings.ToLower(sent), key) {
				t.Errorf("%s: %.120s %q: sent as %s", mode, c.path, c.headers, sent)
			}
			if strings.Contains(c.path, "b=2") && got.URL.Query().Get("b") != "2" {
				t.Errorf("%.120s: the query is %q", c.path, got.URL.RawQuery)
			}
		}
		if len(upstream.requests) > 0 {
			t.Errorf("%s: a request was sent that was refused", mode)
		}
	}
}

// Texts that only resemble a virtual key pass: words with its prefix, and examples in a prompt.
func TestTextsThatResembleAKeyPass(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, oneOfEach, upstream)
	slug := "https://x.example/curl-kubernetes-api-from-inside-a-pod-and-so-on?a=100%&b=%zz"
	example := "rl-" + strings.Repeat("a", 10) + "-" + strings.Repeat("b", 32)
	if a := r.post(t, chat, strings.Replace(hello, "Hello", slug+" "+example, 1), "Referer", slug); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := <-upstream.requests; got.Header.Get("Referer") != slug {
		t.Errorf("sent with %v", got.Header)
	}
}

// Looking for keys in a normal request allocates nothing.
func BenchmarkLookForKeys(b *testing.B) {
	r := newRigBefore(b, oneOfEach, newSeen())
	x := &exchange{g: r.Gateway, r: &http.Request{Header: http.Header{
		"Authorization": {"Bearer " + strings.Repeat("a", 46)}, "User-Agent": {"OpenAI/Python 2.3.4 (linux; x64) with something more behind it"},
		"Content-Type": {"application/json"}, "Accept": {"application/json"}, "X-Stainless-Lang": {"python"}, "X-Stainless-Os": {"Linux"},
		"X-Stainless-Runtime": {"CPython"}, "X-Stainless-Retry-Count": {"0"}, "X-Stainless-Timeout": {"600"},
	}}}
	b.Run("headers", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.removeKeys()
		}
	})
	x.body = []byte(strings.Repeat("The world's early commands were rarely clearly encoded, said Pearl-Lee. ", 1400))
	b.Run("body of 100 KB", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(x.body)))
		for b.Loop() {
			x.checkBodyForKeys()
		}
	})
}

// One pass undoes all layers of escaping. With a pass for each layer, a path of 62 KiB kept a
// core busy for five seconds.
func TestEscapesAreUndoneInOnePass(t *testing.T) {
	for escaped, plain := range map[string]string{
		"":                                     "",
		"100%":                                 "100%",
		"%zz%4":                                "%zz%4",
		"%41%2":                                "A%2",
		"%2541":                                "A",
		"%%341":                                "A",
		"%2%35":                                "%",
		"%%32%35%34%31":                        "A",
		"%25" + strings.Repeat("25", 9) + "41": "A",
	} {
		if got := unescaped(escaped); got != plain {
			t.Errorf("%q is %q unescaped: %q wanted", escaped, got, plain)
		}
	}
}
