package dialect

import "dappco.re/go/core/go-ratelimit/llm"

// A Shape is what has to be known of a request to reserve for it later, when it is known which model it is for. Unlike a
// [Request] it can be written down as JSON. The zero Shape is no request.
type Shape struct {
	Model     string    `json:"model,omitempty"` // that the body names
	Prompt    int       `json:"prompt"`          // see [Request]
	Most      int       `json:"most"`            // the most tokens of the prompt, but for its images
	Images    int       `json:"images,omitempty"`
	Elsewhere bool      `json:"elsewhere,omitempty"` // a part of the prompt is not in the body
	MaxOutput int       `json:"max_output,omitempty"`
	Answers   int       `json:"answers"`
	Units     llm.Units `json:"units,omitzero"`
	MapsAlone bool      `json:"maps,omitempty"` // its searches are those of maps
}

// Shape returns the shape of a request that was read from a body without knowing its model.
func (r *Request) Shape() Shape {
	return Shape{
		Model: r.Model, Prompt: r.Prompt, Most: r.bound.prompt, Images: r.bound.images, Elsewhere: r.bound.elsewhere || r.Context != "",
		MaxOutput: r.MaxOutput, Answers: r.Answers, Units: r.Units, MapsAlone: r.mapsAlone,
	}
}

// Larger returns the shape of a request that uses no less than either of two requests of one model.
func (s Shape) Larger(o Shape) Shape {
	s.Prompt, s.Most, s.Images, s.Answers = max(s.Prompt, o.Prompt), max(s.Most, o.Most), max(s.Images, o.Images), max(s.Answers, o.Answers)
	s.Elsewhere, s.MapsAlone = s.Elsewhere || o.Elsewhere, s.MapsAlone && o.MapsAlone
	if s.MaxOutput != 0 && o.MaxOutput != 0 {
		s.MaxOutput = max(s.MaxOutput, o.MaxOutput)
	} else {
		s.MaxOutput = 0 // one of them has no bound
	}
	for i, n := range o.Units {
		s.Units[i] = max(s.Units[i], n)
	}
	return s
}

// Request returns a request of the shape to an endpoint.
func (s Shape) Request(e Endpoint) Request {
	r := Request{
		Endpoint: e, Prompt: s.Prompt, MaxOutput: s.MaxOutput, Answers: max(s.Answers, 1), size: 1, // it was read from a body
		bound: requestBound{prompt: s.Most, images: s.Images, elsewhere: s.Elsewhere},
	}
	if measure := e.API.protocol().measure; measure != nil {
		m := measure(measuredBody{model: e.Model, answers: r.Answers, tools: s.Units, mapsAlone: s.MapsAlone})
		r.Units, r.Variant, r.SearchesOnce = m.units, m.variant, m.once
	}
	return r
}
