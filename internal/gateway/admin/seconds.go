package admin

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Seconds is a duration. In JSON it is a number of seconds, or a string such as "24h".
type Seconds time.Duration

// MarshalJSON returns the number of seconds.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// UnmarshalJSON reads a number of seconds, or a string.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	var n float64
	if json.Unmarshal(text, &n) == nil && n >= 0 && n < math.MaxInt64/1e9 {
		*s = Seconds(math.Round(n * 1e9))
		return nil
	}
	var words string
	if json.Unmarshal(text, &words) == nil {
		if d, err := time.ParseDuration(words); err == nil && d >= 0 {
			*s = Seconds(d)
			return nil
		}
	}
	return fmt.Errorf("%.40s is not a duration: it must be seconds as a number from 0 on, or a string such as \"24h\"", text)
}
