package limit

import (
	"fmt"
	"strconv"
	"strings"
)

// Percent is a part of something, from 0 to 100 percent. As text, and so in JSON, in YAML
// and on the command line, it is a number and a percent sign: "20%", "12.5%".
type Percent float64

// ParsePercent reads a percentage such as "20%".
func ParsePercent(text string) (Percent, error) {
	number, signed := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	p := Percent(n)
	if err != nil || !signed || strings.Trim(number, "0123456789.") != "" || p.Validate() != nil {
		return 0, fmt.Errorf("ratelimit: percentage %.20q: it must be from 0%% to 100%%, such as 20%%", text)
	}
	return p, nil
}

// Validate returns an error unless the percentage is from 0% to 100%.
func (p Percent) Validate() error {
	if p >= 0 && p <= 100 {
		return nil
	}
	return fmt.Errorf("ratelimit: percentage %v: it must be from 0%% to 100%%", p)
}

// Part returns the percentage as a part of 1: 0.2 for 20%.
func (p Percent) Part() float64 { return float64(p) / 100 }

// String returns the percentage as [ParsePercent] reads it.
func (p Percent) String() string { return strconv.FormatFloat(float64(p), 'f', -1, 64) + "%" }

// MarshalText writes the percentage as String does. One that is not valid is an error.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), p.Validate() }

// UnmarshalText reads a percentage as [ParsePercent] does.
func (p *Percent) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePercent(string(text))
	return err
}
