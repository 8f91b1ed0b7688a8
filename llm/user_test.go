package llm

import (
	"strings"
	"testing"
)

func TestUser(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, test := range []struct {
		body                       string
		identifier, user, metadata string
	}{
		{`{}`, "", "", ""},
		{`{"user":"alice","messages":[{"role":"user","content":"hi"}]}`, "", "alice", ""},
		{`{"safety_identifier":"s","user":"u","metadata":{"user_id":"m"}}`, "s", "u", "m"},
		{`{"metadata":{"a":{"user_id":"deeper"},"user_id":"b\u0000\u002f\"é"},"model":"m"}`, "", "", "b\x00/\"é"},
		{`{"user":"first","user":"last"}`, "", "last", ""},
		{`{"user":"first","user":null}`, "", "", ""},
		{`{"metadata":{"user_id":"first"},"metadata":{}}`, "", "", ""},
		{`{"user":5,"safety_identifier":["a"],"metadata":"user_id"}`, "", "", ""},
		{`{"user":{"user":"x"},"metadata":null,"User":"other"}`, "", "", ""},
		{`{"metadata":{"user_id":{"a":1}}}`, "", "", ""},
		{`{"us\u0065r":"escaped key"}`, "", "escaped key", ""},
		{`{"user":"` + long + `"}`, "", long, ""},
	} {
		r, err := Endpoint{API: Chat}.Read([]byte(test.body))
		if err != nil || r.Wrong != "" {
			t.Errorf("%.80s: %v, %q", test.body, err, r.Wrong)
		}
		for f, want := range map[UserField]string{SafetyIdentifier: test.identifier, UserName: test.user, MetadataUserID: test.metadata, "": ""} {
			if got := r.User([]byte(test.body), f); got != want {
				t.Errorf("%.80s: %s is %.80q", test.body, f, got)
			}
		}
		if got := r.User([]byte(test.body+" "), UserName); got != "" {
			t.Errorf("of another body: %.80q", got)
		}
	}
}
