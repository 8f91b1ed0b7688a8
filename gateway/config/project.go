package config

import (
	"slices"

	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/statefile"
	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
	"dappco.re/go/core/go-ratelimit/project"
)

// amount reads a limit; 0 is no limit.
func amount(to *int) func(yamlValue) { return strictyaml.Count(to, 0, maxAmount) }

const (
	maxWeight   = 1 << 20
	maxPriority = 1000
)

// read reads the fields of a project. A field that the file does not have keeps its value.
func (pr *Project) read(at yamlValue) {
	l := &pr.Limit
	at.Fields(
		field("requests_per_minute", amount(&l.RequestsPerMinute)),
		field("requests_per_hour", amount(&l.RequestsPerHour)),
		field("requests_per_day", amount(&l.RequestsPerDay)),
		field("tokens_per_minute", amount(&l.TokensPerMinute)),
		field("tokens_per_hour", amount(&l.TokensPerHour)),
		field("tokens_per_day", amount(&l.TokensPerDay)),
		field("tokens_per_month", amount(&l.TokensPerMonth)),
		field("resets", resets(&l.Resets)),
		field("max_concurrent", amount(&l.MaxConcurrent)),
		field("weight", strictyaml.Count(&l.Weight, 1, maxWeight)),
		field("priority", strictyaml.Count(&l.Priority, -maxPriority, maxPriority)),
		field("min_share", statefile.Percent(&l.MinShare)),
		field("max_share", statefile.Percent(&l.MaxShare)),
		field("dedicated", strictyaml.Flag(&l.Dedicated)),
		field("max_wait", strictyaml.Duration(&pr.MaxWait, 0, maxTimeout)),
		field("unknown_usage", strictyaml.OneOf(&pr.UnknownUsage, UsageReserved, UsageSeen)),
		field("models", pr.readModels),
	)
	switch {
	case l.MaxShare > 0 && l.MinShare > l.MaxShare:
		at.At("min_share").Fault("%v: it must not be more than max_share, which is %v", l.MinShare, l.MaxShare)
	case l.Dedicated && l.MinShare == 0:
		at.At("dedicated").Fault("it keeps min_share free: min_share must be set")
	}
}

// readDefaults reads the rules for projects that the file does not name. They can promise none
// of these projects a part of a quota.
func (pr *Project) readDefaults(at yamlValue) {
	if pr.read(at); pr.Limit.MinShare > 0 {
		at.At("min_share").Fault("%v: it must be left out here, because every project that is not named would have that much", pr.Limit.MinShare)
	}
}

func (pr *Project) readModels(at yamlValue) {
	pr.Models = nil
	at.Items(func(at yamlValue) {
		if name, ok := at.Text("the name of a model, or a pattern"); ok {
			pr.Models = append(pr.Models, name)
		}
	})
	if len(pr.Models) == 0 && !at.Faulty() {
		at.Fault(`it names no models: it must name one at least; "*" is all of them`)
	}
}

// readProjects reads the projects. A field that a project does not have is as in the defaults.
func (c *Config) readProjects(at yamlValue) {
	limits := map[string]project.Limit{}
	at.Entries(func(id string, key, value yamlValue) {
		if err := project.CheckID(id); err != nil {
			key.Fault("%s", message.Detail(err, project.ErrInvalid))
			return
		}
		pr := new(*c.Defaults)
		pr.Models = slices.Clone(pr.Models)
		pr.read(value)
		c.Projects[id] = pr
		limits[id] = pr.Limit
		if err := project.CheckShares(limits); err != nil && value.Has("min_share") {
			value.At("min_share").Fault("%s", message.Plain(err))
		}
	})
}
