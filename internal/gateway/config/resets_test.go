package config

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
	"dappco.re/go/core/go-ratelimit/limit"
)

func TestResets(t *testing.T) {
	berlin := limit.Calendar{Month: 15, Week: "sunday", At: "06:30", Zone: "Europe/Berlin"}
	for _, c := range []struct {
		text  string
		from  limit.Calendar
		want  limit.Calendar
		fault string
	}{
		{text: `{month: 15, week: sunday, at: "06:30", zone: Europe/Berlin}`, want: berlin},
		{text: `{month: 15, week: sunday, at: 06:30, zone: Europe/Berlin}`, want: berlin},
		{text: `{zone: UTC}`, want: limit.Calendar{Zone: "UTC"}},
		{text: `{month: 1}`, from: berlin, want: limit.Calendar{Month: 1, Week: "sunday", At: "06:30", Zone: "Europe/Berlin"}},
		{text: `off`, from: berlin},
		{text: `{month: 0}`, fault: "file.yaml:1:17: resets.month: \"0\": it must be a whole number from 1 to 31"},
		{text: `{month: 32}`, fault: "file.yaml:1:17: resets.month: \"32\": it must be a whole number from 1 to 31"},
		{text: `{month: last}`, fault: `"last": it must be a whole number from 1 to 31`},
		{text: `{week: Monday}`, fault: `resets.week: "Monday": it must be monday, tuesday, wednesday, thursday, friday, saturday or sunday`},
		{text: `{at: "24:00"}`, fault: `resets.at: "24:00": it must be a time of day from 00:00 to 23:59`},
		{text: `{at: "7:00"}`, fault: `it must be a time of day`},
		{text: `{at: 420}`, fault: `it must be a time of day`},
		{text: `{zone: Berlin}`, fault: `resets.zone: "Berlin": it must be a name in the time zone database, such as Europe/Berlin`},
		{text: `{zone: Local}`, fault: `it must be a name in the time zone database`},
		{text: `{day: 3}`, fault: `resets: unknown field "day": it must be one of month, week, at, zone`},
		{text: `on`, fault: "file.yaml:1:9: resets"},
	} {
		got := c.from
		d := strictyaml.Parse("file.yaml", "resets: "+c.text+"\n", maxBytes, maxParts)
		d.Root().Fields(field("resets", resets(&got)))
		said := ""
		for _, f := range d.Faults() {
			said += f.String() + "\n"
		}
		if c.fault == "" && (said != "" || got != c.want) {
			t.Errorf("%s: %+v, %s; want %+v", c.text, got, said, c.want)
		}
		if c.fault != "" && (!strings.Contains(said, c.fault) || got != c.from) {
			t.Errorf("%s: %+v, %s; want %s", c.text, got, said, c.fault)
		}
	}
}
