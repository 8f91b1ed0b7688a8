// Package server runs a gateway: its listeners, its reloads and its end.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/gateway"
	"dappco.re/go/core/go-ratelimit/gateway/admin"
	"dappco.re/go/core/go-ratelimit/gateway/config"
)

// Options is what a server is started with.
type Options struct {
	Load    func() (*config.Config, error) // the configuration, at the start and whenever it is read anew
	File    string                         // whose change has it read anew; empty: none
	Reload  <-chan os.Signal               // so does a signal here, if there is a file; nil: none
	Log     *slog.Logger                   // the default is one that writes nothing
	Level   *slog.LevelVar                 // is set to what the configuration says; nil: none
	Version string
	Started func(Running) // called once it listens; may be nil
}

// Running is a server that listens.
type Running struct {
	Gateway *gateway.Gateway
	Clients net.Addr
	Admin   net.Addr // nil: there is none
}

// Run serves until ctx ends, and drains then: requests that are being served get as
// long as the configuration says. An error says what has kept it from serving, or
// from ending in good order.
func Run(ctx context.Context, o Options) error {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	garbage, ignore := mindGarbage()
	defer ignore()
	s := &server{Options: o}
	if o.File != "" {
		s.file = config.NewWatcher(o.File) // before it is read, so that no change is missed
	}
	cfg, err := s.load()
	if err != nil {
		return err
	}
	if err := s.open(cfg); err != nil {
		return errors.Join(err, s.close())
	}
	garbage.know(s.gateway)
	s.heed(cfg)
	s.tellKept(cfg)
	failed := s.serve()
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	s.watch(watching, &watchers)
	if o.Started != nil {
		o.Started(s.running())
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stop()
	watchers.Wait()
	s.drain()
	return errors.Join(err, s.close())
}

// server is a gateway and its doors.
type server struct {
	Options
	gateway   *gateway.Gateway
	admin     *admin.Admin
	clients   *door
	admins    *door           // nil: there is none
	file      *config.Watcher // of the configuration; nil: there is none
	reloading sync.Mutex
	unread    atomic.Bool // the last reload has failed
}

// load reads the configuration, from a file that can be read again later.
func (s *server) load() (*config.Config, error) {
	if info, err := os.Stat(s.File); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("ratelimit: %s is no regular file: the configuration must be one, since it is read again when it changes", s.File)
	}
	return s.Load()
}

// open listens, and then opens what the gateway counts in.
func (s *server) open(cfg *config.Config) (err error) {
	if s.clients, err = openDoor("listen", cfg.Listen, cfg.TLS); err != nil {
		return err
	}
	if cfg.Admin.Listen != "" {
		if s.admins, err = openDoor("admin", cfg.Admin.Listen, cfg.Admin.TLS); err != nil {
			return err
		}
	}
	if s.gateway, err = gateway.New(cfg, gateway.Options{Log: s.Log}); err != nil {
		return err
	}
	reload := s.reload
	if s.File == "" {
		reload = nil
	}
	s.admin, err = admin.New(s.gateway, admin.Options{Reload: reload, Version: s.Version, Log: s.Log})
	return err
}

// serve lets requests in. What keeps it from that later is sent.
func (s *server) serve() (failed <-chan error) {
	faults := make(chan error, 2)
	limits := s.gateway.Config().Server
	s.clients.serve(newHost(s.clients, isolated(s.gateway, s.Log), limits, s.Log), faults)
	if s.admins != nil {
		h := newStandard(s.admins, isolated(s.admin, s.Log), limits, s.Log)
		h.ReadTimeout = limits.HeaderTimeout + limits.BodyTimeout // it streams nothing
		h.WriteTimeout = limits.HeaderTimeout + limits.BodyTimeout + limits.WriteTimeout
		s.admins.serve(h, faults)
	}
	return faults
}

func (s *server) running() Running {
	r := Running{Gateway: s.gateway, Clients: s.clients.listener.Addr()}
	if s.admins != nil {
		r.Admin = s.admins.listener.Addr()
	}
	return r
}

// doors returns those that there are.
func (s *server) doors() (all []*door) {
	for _, d := range []*door{s.clients, s.admins} {
		if d != nil {
			all = append(all, d)
		}
	}
	return all
}

// close releases what was opened, in the order that loses nothing.
func (s *server) close() error {
	var faults []error
	for _, d := range s.doors() {
		d.close()
	}
	if s.admin != nil {
		faults = append(faults, s.admin.Close())
	}
	if s.gateway != nil {
		faults = append(faults, s.gateway.Close())
	}
	return errors.Join(faults...)
}
