package config

import "time"

// read reads the whole file. The defaults of projects come before the projects.
func (c *Config) read(p place) {
	p.fields(
		field{"listen", address(&c.Listen)},
		field{"tls", certificate(&c.TLS)},
		field{"admin", c.readAdmin},
		field{"state", state(&c.State)},
		field{"on_store_loss", oneOf(&c.OnStoreLoss, "deny", "allow", "share")},
		field{"keys", oneOf(&c.Keys, KeysOff, KeysRequired)},
		field{"providers", c.readProviders},
		field{"defaults", c.Defaults.read},
		field{"projects", c.readProjects},
		field{"server", c.Server.read},
		field{"log", c.Log.read},
	)
}

func (s *Server) read(p place) {
	const least, most = time.Millisecond, time.Hour
	p.fields(
		field{"max_body", size(&s.MaxBody, 1<<10, 1<<30)},
		field{"max_bodies", size(&s.MaxBodies, 1<<20, 1<<40)},
		field{"max_header", size(&s.MaxHeader, 4<<10, 1<<20)},
		field{"header_timeout", duration(&s.HeaderTimeout, least, most)},
		field{"body_timeout", duration(&s.BodyTimeout, least, most)},
		field{"write_timeout", duration(&s.WriteTimeout, least, most)},
		field{"idle_timeout", duration(&s.IdleTimeout, least, most)},
		field{"drain", duration(&s.Drain, 0, most)},
		field{"hosts", s.readHosts},
	)
}

func (l *Log) read(p place) {
	p.fields(
		field{"level", oneOf(&l.Level, "debug", "info", "warn", "error", "off")},
		field{"sample", count(&l.Sample, 1, 1_000_000)},
	)
}
