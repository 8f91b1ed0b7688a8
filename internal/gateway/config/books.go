package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

const (
	day     = 24 * time.Hour
	maxDays = 3660
)

// read reads for how long the books are kept, or off.
func (b *Books) read(p yamlValue) {
	if text, ok := p.Scalar(); ok && text == "off" {
		*b = Books{Off: true}
		return
	}
	p.Fields(
		field("hours", days(&b.Hours)),
		field("days", days(&b.Days)),
	)
	if !p.Faulty() && b.Days < b.Hours {
		p.Fault("days is %s and hours is %s: days must not be less", daysText(b.Days), daysText(b.Hours))
	}
}

// days reads a number of days.
func days(to *time.Duration) func(yamlValue) {
	want := fmt.Sprintf("a number of days from 1d to %dd", maxDays)
	return strictyaml.Parsed(to, want, func(text string) (time.Duration, bool) {
		number, ok := strings.CutSuffix(text, "d")
		n, whole := strictyaml.WholeNumber(number)
		return time.Duration(n) * day, ok && whole && n >= 1 && n <= maxDays
	})
}

func daysText(d time.Duration) string { return fmt.Sprintf("%dd", d/day) }

// MarshalJSON writes the books as the file has them.
func (b Books) MarshalJSON() ([]byte, error) {
	if b.Off {
		return json.Marshal("off")
	}
	return json.Marshal(map[string]string{"hours": daysText(b.Hours), "days": daysText(b.Days)})
}
