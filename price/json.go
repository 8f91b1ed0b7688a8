package price

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// termsFields is the form of terms in JSON, which is also their form in the configuration.
type termsFields struct {
	From string `json:"from,omitempty"` // a date
	Rates
	Above    oneOrMore[Above] `json:"above,omitempty"`
	Batch    Service          `json:"batch,omitzero"`
	Flex     Service          `json:"flex,omitzero"`
	Priority Service          `json:"priority,omitzero"`
	Fast     Service          `json:"fast,omitzero"`
}

// MarshalJSON writes the terms as the configuration has them.
func (t Terms) MarshalJSON() ([]byte, error) {
	from := ""
	if !t.From.IsZero() {
		from = day(t.From)
	}
	return json.Marshal(termsFields{from, t.Rates, t.Above, t.Batch, t.Flex, t.Priority, t.Fast})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Terms) UnmarshalJSON(text []byte) error {
	var f termsFields
	if err := strict(text, &f); err != nil {
		return err
	}
	*t = Terms{Rates: f.Rates, Above: f.Above, Batch: f.Batch, Flex: f.Flex, Priority: f.Priority, Fast: f.Fast}
	if f.From == "" {
		return nil
	}
	from, err := time.Parse(time.DateOnly, f.From)
	t.From = from
	return err
}

// IsZero reports whether the terms have neither a price nor a date.
func (t *Terms) IsZero() bool {
	return t.From.IsZero() && t.Rates == (Rates{}) && len(t.Above) == 0 &&
		t.Batch.IsZero() && t.Flex.IsZero() && t.Priority.IsZero() && t.Fast.IsZero()
}

// IsZero reports whether the tier has the usual prices.
func (s Service) IsZero() bool { return s.Percent == 0 && s.Rates == (Rates{}) && len(s.Above) == 0 }

type serviceFields struct {
	Rates
	Above oneOrMore[Above] `json:"above,omitempty"`
}

// MarshalJSON writes a percentage such as "50%", or prices.
func (s Service) MarshalJSON() ([]byte, error) {
	if s.Percent != 0 {
		return fmt.Appendf(nil, `"%d%%"`, s.Percent), nil
	}
	return json.Marshal(serviceFields{s.Rates, s.Above})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Service) UnmarshalJSON(text []byte) error {
	percent, ok := strings.CutSuffix(strings.Trim(string(text), `"`), "%")
	if !ok {
		var f serviceFields
		err := strict(text, &f)
		*s = Service{Rates: f.Rates, Above: f.Above}
		return err
	}
	n, err := strconv.Atoi(percent)
	*s = Service{Percent: n}
	return err
}

// MarshalJSON writes the only terms, or a list of all.
func (p *Price) MarshalJSON() ([]byte, error) { return json.Marshal(oneOrMore[Terms](p.terms)) }

// UnmarshalJSON reads and checks what MarshalJSON writes.
func (p *Price) UnmarshalJSON(text []byte) error {
	var terms oneOrMore[Terms]
	if err := json.Unmarshal(text, &terms); err != nil {
		return err
	}
	made, err := New(terms...)
	if err == nil {
		*p = *made
	}
	return err
}

// oneOrMore is a list that is written without brackets if it has one element.
type oneOrMore[T any] []T

func (all oneOrMore[T]) MarshalJSON() ([]byte, error) {
	if len(all) == 1 {
		return json.Marshal(all[0])
	}
	return json.Marshal([]T(all))
}

func (all *oneOrMore[T]) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("[")) {
		return json.Unmarshal(text, (*[]T)(all))
	}
	*all = make([]T, 1)
	return strict(text, &(*all)[0])
}

// strict reads JSON that has no unknown fields.
func strict(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}
