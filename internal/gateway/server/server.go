// Package server runs a gateway: it listens, reloads the configuration, and drains.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/dashboard"
)

// Options is what a server is started with.
type Options struct {
	Load    func() (*config.Config, error) // reads the configuration, at the start and at each reload
	File    string                         // the configuration's file, which a change reloads; empty: it is never reloaded
	Reload  <-chan os.Signal               // a signal reloads the file, too; may be nil
	Log     *slog.Logger                   // nil: nothing is logged
	Level   *slog.LevelVar                 // Run sets it to the level in the configuration; may be nil
	Version string
	Started func(Running) // Run calls it once the server listens; may be nil
}

// Running is a server that listens.
type Running struct {
	Gateway *gateway.Gateway
	Clients net.Addr
	Admin   net.Addr // nil: there is no admin listener
}

// Run serves until ctx ends. Then it drains: requests in progress get as long as the
// configuration says. The error says why the server could not start, go on, or close its
// state.
func Run(ctx context.Context, o Options) error {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	gc, stopTuning := tuneGC()
	defer stopTuning()
	s := &server{Options: o, configFile: newWatcher(o.File, config.Includes)} // before the file is read, so that no change is missed
	cfg, err := s.load()
	if err != nil {
		return err
	}
	if err := s.open(cfg); err != nil {
		return errors.Join(err, s.close())
	}
	gc.setGateway(s.gateway)
	s.apply(cfg)
	s.logUnnamed(cfg)
	failed := s.serve()
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { s.watch(watching) })
	if o.Started != nil {
		o.Started(s.running())
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stop()
	watch.Wait()
	s.drain()
	return errors.Join(err, s.close())
}

// server is a gateway and the endpoints at which it listens.
type server struct {
	Options
	gateway      *gateway.Gateway
	admin        *admin.Admin
	clients      *endpoint
	admins       *endpoint // nil: there is no admin listener
	configFile   *watcher
	reloading    sync.Mutex
	reloadFailed atomic.Bool // the last reload has failed
}

// load reads the configuration. Its file must be one that can be read again.
func (s *server) load() (*config.Config, error) {
	if info, err := os.Stat(s.File); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("ratelimit: %s is not a regular file: the configuration must be one, since it is read again when it changes", s.File)
	}
	return s.Load()
}

// open listens, and then opens the gateway with its state.
func (s *server) open(cfg *config.Config) (err error) {
	most := mostClients(descriptors())
	if s.clients, err = listen("listen", cfg.Listen, cfg.TLS, most); err != nil {
		return err
	}
	if cfg.Admin.Listen != "" {
		if s.admins, err = listen("admin", cfg.Admin.Listen, cfg.Admin.TLS, mostAdmins(descriptors())); err != nil {
			return err
		}
	}
	if s.gateway, err = gateway.New(cfg, gateway.Options{Log: s.Log, Name: nameAt(s.clients.listener.Addr()), Version: s.Version, MaxRequests: most}); err != nil {
		return err
	}
	reload := s.reload
	if s.File == "" {
		reload = nil
	}
	s.admin, err = admin.New(s.gateway, admin.Options{Reload: reload, Version: s.Version, Log: s.Log, Pages: dashboard.New(s.Version)})
	return err
}

// nameAt returns the name of a gateway that listens at an address: that of the machine or the container, and the port.
func nameAt(address net.Addr) string {
	host, err := os.Hostname()
	if err != nil {
		host = "gateway"
	}
	_, port, _ := net.SplitHostPort(address.String())
	return net.JoinHostPort(host, port)
}

// serve starts to accept requests. The channel gets an error when an endpoint stops
// listening by itself.
func (s *server) serve() <-chan error {
	failed := make(chan error, 2)
	limits := s.gateway.Config().Server
	s.clients.serve(newClientServer(s.clients, isolated(s.gateway, s.Log), limits, s.Log), failed)
	if s.admins != nil {
		h := newNetHTTP(s.admins, isolated(s.admin, s.Log), limits, s.Log)
		h.ReadTimeout = limits.HeaderTimeout + limits.BodyTimeout // streams have deadlines of their own
		h.WriteTimeout = limits.HeaderTimeout + limits.BodyTimeout + limits.WriteTimeout
		h.RegisterOnShutdown(s.admin.EndStreams)
		s.admins.serve(h, failed)
	}
	return failed
}

func (s *server) running() Running {
	r := Running{Gateway: s.gateway, Clients: s.clients.listener.Addr()}
	if s.admins != nil {
		r.Admin = s.admins.listener.Addr()
	}
	return r
}

// endpoints returns the endpoints that are open.
func (s *server) endpoints() []*endpoint {
	return slices.DeleteFunc([]*endpoint{s.clients, s.admins}, func(e *endpoint) bool { return e == nil })
}

// close closes the endpoints, which use the state, and then the gateway with its state.
func (s *server) close() (err error) {
	for _, e := range s.endpoints() {
		e.close()
	}
	if s.gateway != nil {
		err = s.gateway.Close()
	}
	return err
}
