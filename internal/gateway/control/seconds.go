package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Seconds is a duration. In JSON it is a number of seconds, or a string such as "24h" or "30d".
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
		if d, err := ParseDuration(words); err == nil {
			*s = Seconds(d)
			return nil
		}
	}
	return fmt.Errorf("%.40s is not a duration: it must be seconds as a number from 0 on, or a string such as \"90m\", \"12h\" or \"30d\"", text)
}

// ParseDuration reads a duration from 0 on: as [time.ParseDuration] does, or in days, such as 30d.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16) // more days would overflow the nanoseconds
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d < 0 {
		return 0, errors.New("it must be 0 or more, such as 90m, 12h or 30d")
	}
	return d, nil
}
