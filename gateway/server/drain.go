package server

import "time"

const (
	tellEvery = 5 * time.Second // how many requests are left
	lookEvery = 10 * time.Millisecond
	untilGone = 5 * time.Second // that requests which were cut off have to notice it
	untilRead = 2 * time.Second // that clients have to read the end of their answers
)

// drain refuses new requests, and lets those that are being served finish within what
// the configuration gives them. The doors stay open meanwhile, so that those who come
// are told, and the admin API too.
func (s *server) drain() {
	within := s.gateway.Config().Server.Drain
	s.gateway.Drain()
	s.clients.host.Drain()
	s.Log.Info("draining: new requests are refused", "active", s.gateway.Active(), "within", within.String())
	if s.await(within) {
		s.clients.finish(untilRead)
	} else {
		s.Log.Warn("the time to drain is up: those that are left are cut off", "active", s.gateway.Active())
		s.clients.host.Close()
		s.await(untilGone) // they settle what they have reserved before the state is closed
	}
	if s.admins != nil {
		s.admins.finish(untilRead)
	}
	s.Log.Info("drained")
}

// await reports whether no request is left within a time.
func (s *server) await(within time.Duration) bool {
	late := time.NewTimer(within)
	defer late.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	tell := time.NewTicker(tellEvery)
	defer tell.Stop()
	for s.gateway.Active() > 0 {
		select {
		case <-late.C:
			return false
		case <-tell.C:
			s.Log.Info("draining", "active", s.gateway.Active())
		case <-look.C:
		}
	}
	return true
}
