package dialect

import (
	"cmp"
	"encoding/json"
	"strings"
)

// UserField is a field of a body that says for which of the caller's users a call is made. Where the
// text of the field is a JSON object, the name of a member may follow: metadata.user_id.account_uuid.
type UserField string

// The fields of users.
const (
	safetyIdentifier UserField = "safety_identifier" // OpenAI's
	plainUser        UserField = "user"              // OpenAI's before safety_identifier, and the one of most servers with its API
	metadataUserID   UserField = "metadata.user_id"  // Anthropic's
)

// Split returns the field without the member of the JSON in it, and that member, or "". ok is false if
// the field is none of a user.
func (f UserField) Split() (field UserField, member string, ok bool) {
	for _, known := range []UserField{safetyIdentifier, plainUser, metadataUserID} {
		if f == known {
			return known, "", true
		}
		if member, ok := strings.CutPrefix(string(f), string(known)+"."); ok {
			return known, member, member != ""
		}
	}
	return "", "", false
}

// In returns the user whom the text of the field names, or "". Claude Code's metadata.user_id has the
// account, the device and the session in one text: the user is the account, or else the device, so
// that a session is no new user.
func (f UserField) In(text string) string {
	field, member, _ := f.Split()
	switch {
	case member != "":
		return membersIn(text)[member]
	case field == metadataUserID:
		if m := membersIn(text); m["session_id"] != "" {
			return cmp.Or(m["account_uuid"], m["device_id"], text)
		}
	}
	return text
}

// maxUserText is the most bytes of a text that is read as JSON to find a user in it.
const maxUserText = 4 << 10

// membersIn returns the members of a JSON object in a text that are texts themselves. It also reads
// the form that Claude Code had before: user_DEVICE_account_ACCOUNT_session_SESSION.
func membersIn(text string) map[string]string {
	if device, rest, ok := strings.Cut(strings.TrimPrefix(text, "user_"), "_account_"); ok && device != "" {
		if account, session, ok := strings.Cut(rest, "_session_"); ok {
			return map[string]string{"device_id": device, "account_uuid": account, "session_id": session}
		}
	}
	if !strings.HasPrefix(text, "{") || len(text) > maxUserText {
		return nil
	}
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) != nil {
		return nil
	}
	members := map[string]string{}
	for name, value := range object {
		if s, ok := value.(string); ok {
			members[name] = s
		}
	}
	return members
}

// userPlaces is where the fields of users are in a body.
type userPlaces struct{ identifier, user, metadata span }

// span is a range of a body: a string with its quotes, or nothing.
type span struct{ from, to int }

// place returns where a field is noted.
func (p *userPlaces) place(f UserField) *span {
	switch f {
	case safetyIdentifier:
		return &p.identifier
	case plainUser:
		return &p.user
	case metadataUserID:
		return &p.metadata
	}
	return new(span)
}

// User returns the user whom a field of the body names, or "". body is the one that was read. Of two
// fields with one name the last counts.
func (r *Request) User(body []byte, f UserField) string {
	field, _, _ := f.Split()
	at := r.users.place(field)
	if at.to == 0 || len(body) != r.size {
		return ""
	}
	c := cursor{body: body[:at.to], at: at.from}
	return f.In(c.name())
}

// user notes where a field, or a member of it, names a user.
func (r *requestReader) user(f *field) {
	if f.name == "metadata" {
		r.metadata()
		return
	}
	r.userName(UserField(f.name))
}

// userName notes where a field of a user is.
func (r *requestReader) userName(f UserField) {
	to := r.users.place(f)
	*to = span{}
	isText, from := r.next() == '"', r.at
	r.skip()
	if isText {
		*to = span{from, r.at}
	}
}

// metadata looks for the user in an object with anything.
func (r *requestReader) metadata() {
	if r.users.metadata = (span{}); r.next() != '{' {
		r.skip()
		return
	}
	r.at++
	for first := true; r.item(first, '}'); first = false {
		if string(r.key()) == "user_id" {
			r.userName(metadataUserID)
		} else {
			r.skip()
		}
	}
}
