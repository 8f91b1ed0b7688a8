package dialect

import (
	"strings"
	"testing"
)

// Claude Code's text has a session in it, which is no user.
func TestUserInAText(t *testing.T) {
	const account, device = `{"device_id":"d","account_uuid":"a","session_id":"s"}`, `{"device_id":"d","account_uuid":"","session_id":"s"}`
	for _, test := range []struct {
		field      UserField
		text, want string
	}{
		{metadataUserID, "alice", "alice"},
		{metadataUserID, account, "a"},
		{metadataUserID, device, "d"},
		{metadataUserID, "user_d_account_a_session_s", "a"},
		{metadataUserID, "user_d_account__session_s", "d"},
		{metadataUserID, `{"name":"alice"}`, `{"name":"alice"}`},
		{metadataUserID, `{"session_id":"s"}`, `{"session_id":"s"}`},
		{metadataUserID, `{not JSON`, `{not JSON`},
		{metadataUserID, "user_account_session", "user_account_session"},
		{"metadata.user_id.session_id", account, "s"},
		{"metadata.user_id.account_uuid", account, "a"},
		{"metadata.user_id.account_uuid", device, ""},
		{"metadata.user_id.device_id", "user_d_account_a_session_s", "d"},
		{"metadata.user_id.name", `{"name":"alice","age":5}`, "alice"},
		{"metadata.user_id.age", `{"name":"alice","age":5}`, ""},
		{"metadata.user_id.name", "alice", ""},
		{"user.name", `{"name":"alice"}`, "alice"},
		{plainUser, account, account},
	} {
		if got := test.field.In(test.text); got != test.want {
			t.Errorf("%s in %s: %q, want %q", test.field, test.text, got, test.want)
		}
	}
	for _, f := range []UserField{"", "name", "metadata", "metadata.", "metadata.user_id.", "users.name"} {
		if _, _, ok := f.Split(); ok {
			t.Errorf("%q is a field of a user", f)
		}
	}
}

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
		for f, want := range map[UserField]string{safetyIdentifier: test.identifier, plainUser: test.user, metadataUserID: test.metadata, "": ""} {
			if got := r.User([]byte(test.body), f); got != want {
				t.Errorf("%.80s: %s is %.80q", test.body, f, got)
			}
		}
		if got := r.User([]byte(test.body+" "), plainUser); got != "" {
			t.Errorf("of another body: %.80q", got)
		}
	}
}
