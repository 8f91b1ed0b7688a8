package batch

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// A Digest is what is kept of the calls of a file of Gemini's, which gives no uploaded file back, until a batch is
// submitted with it: how many calls there are of each shape. It takes little room however many there are.
type Digest struct {
	Groups []Group `json:"groups"`

	// Users are those that calls name in one of Fields. Not all of them are here if Many is set.
	Users  []string            `json:"users,omitempty"`
	Many   bool                `json:"many,omitempty"`
	Fields []dialect.UserField `json:"fields,omitempty"`
}

// A Group is calls of nearly the same shape. Its Shape is that of the largest.
type Group struct {
	Calls int           `json:"calls"`
	Shape dialect.Shape `json:"shape"`
}

const (
	maxGroups = 32  // of a digest; the last one takes all calls that fit no other
	maxModel  = 256 // bytes of the name of a model
	maxUsers  = 100
	maxUser   = 256 // bytes of a user
)

var errModel = fmt.Errorf("ratelimit: its model has a name of more than %d bytes", maxModel)

// Add adds the call of a line of a file of Gemini's.
func (d *Digest) Add(line []byte) error {
	values, err := Fields(line, "request")
	if err != nil {
		return err
	}
	r, err := read(dialect.Endpoint{Provider: dialect.Gemini, API: dialect.Generate}, values[0])
	if err != nil {
		return err
	}
	d.addUser(UserIn(values[0], d.Fields))
	shape := r.Shape()
	if len(shape.Model) > maxModel {
		return errModel
	}
	for i := range d.Groups {
		if g := &d.Groups[i]; sizeless(g.Shape) == sizeless(shape) || i == maxGroups-1 && g.Shape.Model == shape.Model {
			g.Calls++
			g.Shape = g.Shape.Larger(shape)
			return nil
		}
	}
	if len(d.Groups) == maxGroups {
		return errObject
	}
	d.Groups = append(d.Groups, Group{1, shape})
	return nil
}

// addUser adds the user of a call, who may be nobody.
func (d *Digest) addUser(user string) {
	switch {
	case user == "" || d.Many || slices.Contains(d.Users, user):
	case len(d.Users) == maxUsers || len(user) > maxUser:
		d.Many = true
	default:
		d.Users = append(d.Users, user)
	}
}

// UserIn returns the user that the first of the fields names that a body has, or "".
func UserIn(body []byte, fields []dialect.UserField) string {
	for _, field := range fields {
		if user := userIn(body, field); user != "" {
			return user
		}
	}
	return ""
}

func userIn(body []byte, field dialect.UserField) (user string) {
	whole, _, _ := field.Split()
	name, member, inside := strings.Cut(string(whole), ".")
	values, err := Fields(body, name)
	if err == nil && inside {
		values, err = Fields(values[0], member)
	}
	if err != nil || json.Unmarshal(values[0], &user) != nil {
		return ""
	}
	return field.In(user)
}

// sizeless returns a shape with the length of its prompt in powers of two.
func sizeless(s dialect.Shape) dialect.Shape {
	s.Prompt, s.Most = 0, bits.Len(uint(max(s.Most, 0)))
	return s
}
