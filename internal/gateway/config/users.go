package config

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// Users says where a call names the user who makes it: in the header, or else in the fields. With the
// zero Users, calls have none.
type Users struct {
	Header string              `json:"header,omitempty"` // the canonical name of a header
	Fields []dialect.UserField `json:"field,omitempty"`  // fields of the body: the first that the body has counts
}

func (u *Users) read(at yamlValue) {
	at.Fields(
		field("header", u.readHeader),
		field("field", u.readFields),
	)
}

// headerName is what a header may be called.
var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)

// takenHeaders have another meaning, or do not reach the gateway as the client has sent them.
var takenHeaders = []string{
	"Authorization", "X-Gateway-Key", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "X-Project-Id", "X-Run-Id", "Host", "Connection", "Cookie", "Expect", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade",
}

func (u *Users) readHeader(at yamlValue) {
	const want = "the name of a header, such as X-User-ID"
	text, ok := at.Text(want)
	if !ok {
		return
	}
	name := http.CanonicalHeaderKey(text)
	switch {
	case !headerName.MatchString(text):
		at.Fault("%s: it must be %s", message.Quote(text), want)
	case slices.Contains(takenHeaders, name) || strings.HasPrefix(name, "Content-") || strings.HasPrefix(name, "Proxy-"):
		at.Fault("%s has a meaning of its own: it must be another header, such as X-User-ID", text)
	default:
		u.Header = name
	}
}

// readFields reads one field, or a list of fields.
func (u *Users) readFields(at yamlValue) {
	u.Fields = nil
	one := func(at yamlValue) {
		const want = "safety_identifier, user or metadata.user_id, or a member of the JSON in one of them, such as metadata.user_id.account_uuid"
		if text, ok := at.Text(want); !ok {
			return
		} else if _, _, known := dialect.UserField(text).Split(); !known {
			at.Fault("%s: it must be %s", message.Quote(text), want)
		} else {
			u.Fields = append(u.Fields, dialect.UserField(text))
		}
	}
	if _, ok := at.Scalar(); ok {
		one(at)
		return
	}
	at.Items(one)
	if len(u.Fields) == 0 && !at.Faulty() {
		at.Fault("it is empty: it must name one field at least, or be left out")
	}
}
