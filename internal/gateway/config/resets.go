package config

import (
	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
	"dappco.re/go/core/go-ratelimit/limit"
)

// resets reads when hours, days, weeks and months begin. A field that the file does not have keeps
// its value; off is none of them, so that windows are rolling.
func resets(to *limit.Calendar) func(yamlValue) {
	return func(at yamlValue) {
		if text, ok := at.Scalar(); ok && text == "off" {
			*to = limit.Calendar{}
			return
		}
		at.Fields(
			field("month", strictyaml.Count(&to.Month, 1, 31)),
			field("week", strictyaml.OneOf(&to.Week, "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")),
			field("at", strictyaml.Parsed(&to.At, "a time of day from 00:00 to 23:59", func(text string) (string, bool) {
				return text, limit.Calendar{At: text}.Validate() == nil
			})),
			field("zone", strictyaml.Parsed(&to.Zone, "a name in the time zone database, such as Europe/Berlin", func(text string) (string, bool) {
				return text, limit.Calendar{Zone: text}.Validate() == nil
			})),
		)
	}
}
