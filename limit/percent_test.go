package limit_test

import (
	"encoding/json"
	"flag"
	"io"
	"math"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/limit"
)

func TestPercent(t *testing.T) {
	for text, want := range map[string]limit.Percent{"0%": 0, "20%": 20, "12.5%": 12.5, "100%": 100, "0.01%": 0.01} {
		p, err := limit.ParsePercent(text)
		if err != nil || p != want || p.String() != text {
			t.Errorf("%s is %v, %v", text, p, err)
		}
		if got := p.Part(); got != float64(want)/100 {
			t.Errorf("%s is a part of %v", text, got)
		}
	}
	for _, text := range []string{"", "%", "20", "-1%", "+1%", "101%", "100.01%", "1e1%", "0x10%", "1_0%", "NaN%", "inf%", " 1%", "1 %", "1.2.3%", "ten%"} {
		if p, err := limit.ParsePercent(text); err == nil || !strings.Contains(err.Error(), "from 0% to 100%, such as 20%") {
			t.Errorf("%q is %v, %v", text, p, err)
		}
	}
	for _, p := range []limit.Percent{-1, 100.5, limit.Percent(math.NaN()), limit.Percent(math.Inf(1))} {
		if p.Validate() == nil {
			t.Errorf("%v is valid", p)
		}
		if _, err := p.MarshalText(); err == nil {
			t.Errorf("%v is written", p)
		}
	}
}

// A percentage has the same text in JSON and on the command line. Zero is left out.
func TestPercentAsText(t *testing.T) {
	type share struct {
		Min limit.Percent `json:"min,omitempty"`
		Max limit.Percent `json:"max,omitempty"`
	}
	text, err := json.Marshal(share{Max: 12.5})
	if err != nil || string(text) != `{"max":"12.5%"}` {
		t.Error(string(text), err)
	}
	var s share
	if err := json.Unmarshal([]byte(`{"min":"20%"}`), &s); err != nil || s.Min != 20 {
		t.Error(s, err)
	}
	for _, wrong := range []string{`{"min":20}`, `{"min":"20"}`} {
		if err := json.Unmarshal([]byte(wrong), &s); err == nil {
			t.Errorf("%s is read as %v", wrong, s)
		}
	}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.TextVar(&s.Max, "max-share", limit.Percent(50), "")
	if err := flags.Parse([]string{"--max-share", "75%"}); err != nil || s.Max != 75 {
		t.Error(s.Max, err)
	}
	if err := flags.Parse([]string{"--max-share", "175%"}); err == nil {
		t.Error(s.Max)
	}
}
