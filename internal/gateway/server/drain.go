package server

import "time"

const (
	logInterval   = 5 * time.Second
	checkInterval = 10 * time.Millisecond
	timeToSettle  = 5 * time.Second // how long requests that were cut off may take to settle, after their answers were read on
	timeToRead    = 2 * time.Second // how long clients may take to read the end of their answers
)

// drain refuses new requests, and gives requests in progress as long as the configuration
// says to finish. Meanwhile the server listens, so that clients get the refusal, and the
// admin API goes on.
func (s *server) drain() {
	within, readOn := s.gateway.Config().Server.Drain, s.gateway.Config().Server.ReadOn
	s.gateway.Drain()
	s.clients.server.Drain()
	s.Log.Info("draining: new requests are refused", "active", s.gateway.Active(), "within", within.String())
	if s.waitIdle(within) {
		s.clients.finish(timeToRead)
	} else {
		s.Log.Warn("the time to drain is up: those that are left are cut off", "active", s.gateway.Active())
		s.clients.server.Close()
		s.waitIdle(readOn + timeToSettle) // the requests must settle their reservations before the state is closed
	}
	if s.admins != nil {
		s.admins.finish(timeToRead)
	}
	s.Log.Info("drained")
}

// waitIdle waits until no request is in progress. It returns false after the timeout.
func (s *server) waitIdle(timeout time.Duration) bool {
	end := time.NewTimer(timeout)
	defer end.Stop()
	check := time.NewTicker(checkInterval)
	defer check.Stop()
	log := time.NewTicker(logInterval)
	defer log.Stop()
	for s.gateway.Active() > 0 {
		select {
		case <-end.C:
			return false
		case <-log.C:
			s.Log.Info("draining", "active", s.gateway.Active())
		case <-check.C:
		}
	}
	return true
}
