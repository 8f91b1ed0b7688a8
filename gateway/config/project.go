package config

import (
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/project"
)

// amount reads a limit, of which 0 is none.
func amount(to *int) func(place) { return count(to, 0, maxAmount) }

const (
	maxWeight   = 1 << 20
	maxPriority = 1000
)

// read reads what a project says; the rest stays as it is.
func (pr *Project) read(at place) {
	l := &pr.Limit
	at.fields(
		field{"requests_per_minute", amount(&l.RequestsPerMinute)},
		field{"requests_per_hour", amount(&l.RequestsPerHour)},
		field{"requests_per_day", amount(&l.RequestsPerDay)},
		field{"tokens_per_minute", amount(&l.TokensPerMinute)},
		field{"tokens_per_hour", amount(&l.TokensPerHour)},
		field{"tokens_per_day", amount(&l.TokensPerDay)},
		field{"tokens_per_month", amount(&l.TokensPerMonth)},
		field{"max_concurrent", amount(&l.MaxConcurrent)},
		field{"weight", count(&l.Weight, 1, maxWeight)},
		field{"priority", count(&l.Priority, -maxPriority, maxPriority)},
		field{"max_wait", duration(&pr.MaxWait, 0, maxTimeout)},
		field{"unknown_usage", oneOf(&pr.UnknownUsage, UsageReserved, UsageSeen)},
		field{"models", pr.readModels},
	)
}

func (pr *Project) readModels(at place) {
	pr.Models = nil
	at.items(func(at place) {
		if name, ok := at.text("the name of a model, or a pattern"); ok {
			pr.Models = append(pr.Models, name)
		}
	})
	if len(pr.Models) == 0 && !at.r.faulty(at.path) {
		at.fault(`it names no models: it must name one at least; "*" is all of them`)
	}
}

// readProjects reads all of them, each over the defaults.
func (c *Config) readProjects(at place) {
	at.entries(func(id string, key, value place) {
		if err := project.CheckID(id); err != nil {
			key.fault("%s", strings.TrimPrefix(err.Error(), project.ErrInvalid.Error()+": "))
			return
		}
		pr := new(*c.Defaults)
		pr.Models = slices.Clone(pr.Models)
		pr.read(value)
		c.Projects[id] = pr
	})
}
