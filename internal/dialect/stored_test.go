package dialect

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// readStored reads a request together with what the provider has stored.
func readStored(t *testing.T, p llm.Provider, method, path, body, stored string, late time.Duration) Request {
	t.Helper()
	e, ok := RecognizeAt(p, method, &url.URL{Path: path})
	if !ok {
		t.Fatalf("%s %s is not known", method, path)
	}
	s, err := e.Stored(path, "application/json", []byte(body))
	if err != nil || s == nil {
		t.Fatalf("%s: %v, %v", body, s, err)
	}
	s.Now, s.Late = time.Now(), late
	s.Add([]byte(stored))
	q, err := s.Request()
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return q
}

// What a stored video costs to change is what the video says, whatever else the request says.
func TestStoredVideoDecides(t *testing.T) {
	const stored = `{"id":"v","model":"sora-2-pro","seconds":"8","size":"1280x720"}`
	for _, c := range []struct {
		path, more string
		seconds    int64
	}{
		{"/v1/videos/v/remix", ``, 8},
		{"/v1/videos/v/remix", `,"model":"sora-2","seconds":"4","size":"1x1"`, 8},
		{"/v1/videos/edits", `,"model":"sora-2","seconds":"4","size":"1x1"`, 8},
		{"/v1/videos/extensions", `,"model":"sora-2","seconds":"20","size":"1x1"`, 20},
		{"/v1/videos/extensions", ``, 8},
		{"/v1/videos/extensions", `,"seconds":null`, 8},
		{"/v1/videos/extensions", `,"seconds":"1e9"`, -1},
	} {
		q := readStored(t, OpenAI, http.MethodPost, c.path, `{"video":{"id":"v"}`+c.more+`}`, stored, 0)
		if q.Model != "sora-2-pro" || q.Variant != "1280x720" || q.Units[llm.VideoSeconds] != c.seconds || q.Wrong != "" {
			t.Errorf("%s%s: %s %s %v %s, want %d seconds", c.path, c.more, q.Model, q.Variant, q.Units, q.Wrong, c.seconds)
		}
	}
	q := readStored(t, OpenAI, http.MethodPost, "/v1/videos/extensions", `{"video":{"id":"v"},"seconds":20}`, stored, 0)
	if !strings.Contains(q.Wrong, "seconds") {
		t.Errorf("a number of seconds is no word: %q, %v", q.Wrong, q.Units)
	}
}

// A change of a cache costs the hours beyond those that were paid for, at the price of the cache's own model. A ttl counts
// from when the request is sent.
func TestCacheChange(t *testing.T) {
	stored := fmt.Sprintf(`{"model":"models/gemini-2.5-pro","expireTime":%q,"usageMetadata":{"totalTokenCount":3600}}`, time.Now().Add(time.Hour).Format(time.RFC3339Nano))
	at := func(d time.Duration) string { return time.Now().Add(d).Format(time.RFC3339Nano) }
	for _, c := range []struct {
		body string
		late time.Duration
		want int64 // seconds that are paid for
	}{
		{`{"ttl":"7200s","model":"models/gemini-2.5-flash-lite"}`, 0, 3600},
		{`{"ttl":"7200s"}`, 10 * time.Minute, 4200},
		{`{"ttl":"3599s"}`, 10 * time.Minute, 599},
		{`{"ttl":"2900s"}`, 10 * time.Minute, 0},
		{`{"ttl":"7200s"}`, 24 * time.Hour, 7200},
		{`{"expireTime":"` + at(2*time.Hour) + `"}`, 10 * time.Minute, 3600},
		{`{"expire_time":"` + at(time.Minute) + `"}`, 10 * time.Minute, 0},
		{`{"expire_time":"` + at(time.Minute) + `","ttl":"1s"}`, 0, -1},
		{`{"ttl":"1e9s"}`, 0, -1},
		{`{}`, 10 * time.Minute, 0},
	} {
		q := readStored(t, Gemini, http.MethodPatch, "/v1beta/cachedContents/c", c.body, stored, c.late)
		if got := q.Units[llm.TokenHours]; got < c.want || got > c.want+5 || c.want <= 0 && got != c.want || !strings.Contains(q.Model, "gemini-2.5-pro") || q.Wrong != "" {
			t.Errorf("%s: %d token hours of %s (%s), want %d", c.body, got, q.Model, q.Wrong, c.want)
		}
	}
	for _, body := range []string{`{"ttl":{"seconds":10000000}}`, `{"ttl":["7200s"]}`, `{"ttl":7200}`, `{"expireTime":{"seconds":4000000000}}`} {
		if q := readStored(t, Gemini, http.MethodPatch, "/v1beta/cachedContents/c", body, stored, 0); q.Wrong == "" {
			t.Errorf("%s costs %d token hours, but nobody knows", body, q.Units[llm.TokenHours])
		}
	}
}

// A body that is nested millions of times does not use up the stack, which would end the program.
func TestDeepBodiesAreNotRead(t *testing.T) {
	for _, body := range []string{strings.Repeat("[", 8_000_000), strings.Repeat(`{"a":`, 2_000_000), `{"training_file":"file-1","x":` + strings.Repeat("[", 4_000_000) + strings.Repeat("]", 4_000_000) + "}"} {
		for _, path := range []string{"/v1/fine_tuning/jobs", "/v1/videos/edits"} {
			e, ok := RecognizeAt(OpenAI, http.MethodPost, &url.URL{Path: path})
			if !ok {
				t.Fatalf("%s is not known", path)
			}
			if s, _ := e.Stored(path, "application/json", []byte(body)); s != nil && s.Paths != nil {
				t.Errorf("%s: %.40s names %s", path, body, s.Paths)
			}
		}
	}
}
