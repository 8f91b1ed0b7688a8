package admin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`0`: 0, `90`: 90 * time.Second, `0.5`: 500 * time.Millisecond, `1e3`: 1000 * time.Second,
		`"24h"`: 24 * time.Hour, `"30d"`: 720 * time.Hour, `"1h30m"`: 90 * time.Minute, `"0"`: 0, `null`: 0,
	} {
		var s Seconds
		if err := json.Unmarshal([]byte(text), &s); err != nil || time.Duration(s) != want {
			t.Errorf("%s is %v: %v", text, time.Duration(s), err)
		}
	}
	for _, text := range []string{`-1`, `1e300`, `9223372037`, `9223372036.854776`, `"-1h"`, `"1"`, `"soon"`, `""`, `{}`, `[]`, `true`} {
		var s Seconds
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("%s is %v", text, time.Duration(s))
		}
	}
	if text, err := json.Marshal(Seconds(1500 * time.Millisecond)); err != nil || string(text) != "1.5" {
		t.Errorf("%s, %v", text, err)
	}
}

// Any body is either decoded or refused with a text that says what is wrong.
func FuzzBody(f *testing.F) {
	for _, text := range []string{"", "{}", `{"max_rpm": 1}`, `{"max_rpm": 1}x`, `{"a":`, "[1]", `"x"`, "null", "\xff", `{"margin": "2s"}`, `{"margin": null}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := httptest.NewRequest(http.MethodPut, "/", strings.NewReader(text))
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		quota, err := decode[Quota](r)
		if err != nil {
			if p := problemOf(err); p.Status < 400 || p.Status >= 500 || p.Detail == "" {
				t.Errorf("%+v", p)
			}
			return
		}
		var same Quota
		if err := json.Unmarshal([]byte(text), &same); err != nil || !cmp.Equal(same, quota) || !strings.Contains(text, "{") {
			t.Errorf("%q is read as %+v: %v", text, quota, err)
		}
	})
}
