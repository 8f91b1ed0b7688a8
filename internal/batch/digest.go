package batch

import (
	"fmt"
	"math/bits"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// A Digest is what is kept of the calls of a file of Gemini's, which gives no uploaded file back, until a batch is
// submitted with it: how many calls there are of each shape. It takes little room however many there are.
type Digest struct {
	Groups []Group `json:"groups"`
}

// A Group is calls of nearly the same shape. Its Shape is that of the largest.
type Group struct {
	Calls int           `json:"calls"`
	Shape dialect.Shape `json:"shape"`
}

const (
	maxGroups = 32  // of a digest; the last one takes all calls that fit no other
	maxModel  = 256 // bytes of the name of a model
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

// sizeless returns a shape with the length of its prompt in powers of two.
func sizeless(s dialect.Shape) dialect.Shape {
	s.Prompt, s.Most = 0, bits.Len(uint(max(s.Most, 0)))
	return s
}
