package llm

// UserField is a field of a body that says for which of the caller's users a call is made.
type UserField string

// The fields of users.
const (
	SafetyIdentifier UserField = "safety_identifier" // OpenAI's
	UserName         UserField = "user"              // OpenAI's before safety_identifier, and that of most servers with its API
	MetadataUserID   UserField = "metadata.user_id"  // Anthropic's
)

// userPlaces is where the fields of users are in a body.
type userPlaces struct{ identifier, user, metadata span }

// span is a range of a body: a string with its quotes, or nothing.
type span struct{ from, to int }

// place returns where a field is noted.
func (p *userPlaces) place(f UserField) *span {
	switch f {
	case SafetyIdentifier:
		return &p.identifier
	case UserName:
		return &p.user
	case MetadataUserID:
		return &p.metadata
	}
	return new(span)
}

// User returns the user whom a field of the body names, or "". body is the one that was read. Of two
// fields with one name the last counts.
func (r *Request) User(body []byte, f UserField) string {
	at := r.users.place(f)
	if at.to == 0 || len(body) != r.size {
		return ""
	}
	c := cursor{body: body[:at.to], at: at.from}
	return c.name()
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
	if r.skip(); isText {
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
			r.userName(MetadataUserID)
		} else {
			r.skip()
		}
	}
}
