package config

import (
	"time"

	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

// read reads the whole file, and the files that it includes. It reads the defaults of projects before the projects.
func (c *Config) read(r *reader) {
	var projects []yamlValue // the section of each file
	r.Root().Fields(
		field("listen", address(&c.Listen)),
		field("tls", certificate(&c.TLS)),
		field("admin", c.readAdmin),
		field("state", storage(&c.State)),
		field("on_store_loss", strictyaml.OneOf(&c.OnStoreLoss, "deny", "allow", "share")),
		field("keys", strictyaml.OneOf(&c.Keys, KeysOff, KeysRequired)),
		field("jwt", func(p yamlValue) { c.JWT = readJWT(p) }),
		field("mode", mode(&c.Mode)),
		field("providers", c.readProviders),
		field("defaults", c.Defaults.readDefaults),
		field("include", func(p yamlValue) { c.Included = r.include(p) }),
		field("projects", func(p yamlValue) { projects = append(projects, p) }),
		field("users", c.Users.read),
		field("runs", c.Runs.read),
		field("usage", c.Books.read),
		field("thresholds", c.Thresholds.read),
		field("prices", c.readPrices),
		field("unpriced", c.readUnpriced),
		field("server", c.Server.read),
		field("otlp", func(p yamlValue) { c.OTLP = readOTLP(p) }),
		field("log", c.Log.read),
	)
	for _, d := range r.included {
		projects = append(projects, d.Root().At("projects"))
	}
	c.readProjects(r, projects)
}

// mode reads whether limits are enforced.
func mode(to *string) func(yamlValue) { return strictyaml.OneOf(to, ModeEnforce, ModeShadow) }

// maxRetryAfterMax is longer than any wait for a limit by the month.
const maxRetryAfterMax = 32 * day

func (s *Server) read(p yamlValue) {
	const least, most = time.Millisecond, time.Hour
	p.Fields(
		field("max_body", size(&s.MaxBody, 1<<10, 1<<30)),
		field("max_bodies", size(&s.MaxBodies, 1<<20, 1<<40)),
		field("max_header", size(&s.MaxHeader, 4<<10, 1<<20)),
		field("header_timeout", strictyaml.Duration(&s.HeaderTimeout, least, most)),
		field("body_timeout", strictyaml.Duration(&s.BodyTimeout, least, most)),
		field("write_timeout", strictyaml.Duration(&s.WriteTimeout, least, most)),
		field("read_on", strictyaml.Duration(&s.ReadOn, 0, time.Minute)),
		field("idle_timeout", strictyaml.Duration(&s.IdleTimeout, least, most)),
		field("drain", strictyaml.Duration(&s.Drain, 0, most)),
		field("while_waiting", strictyaml.OneOf(&s.WhileWaiting, WaitComments, WaitEarlyHints, WaitNothing)),
		field("retry_after_max", strictyaml.Duration(&s.RetryAfterMax, time.Second, maxRetryAfterMax)),
		field("hosts", s.readHosts),
	)
}

func (l *Log) read(p yamlValue) {
	p.Fields(
		field("level", strictyaml.OneOf(&l.Level, "debug", "info", "warn", "error", "off")),
		field("sample", strictyaml.Count(&l.Sample, 1, 1_000_000)),
		field("requests", filePath(&l.Requests)),
	)
}
