package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

const (
	joinPatience  = 30 * time.Second
	silence       = 3 * time.Second // without a word at the start
	drainPatience = 2 * time.Minute
	lastWords     = 2 * time.Second
	callPatience  = 30 * time.Second
	headerTime    = 10 * time.Second
)

// A site is where a process runs: what it listens on, and which managers it asks.
type site struct {
	managers          []string
	insecure          bool // the network can be trusted
	listen, advertise string
	log               *slog.Logger
	open              []*lookup.Lookup
}

func (s *site) flags(cmd *cobra.Command, listen string) {
	cmd.Flags().StringSliceVar(&s.managers, "managers", []string{"127.0.0.1:7400"}, "where the managers are")
	cmd.Flags().BoolVar(&s.insecure, "insecure", false, "speak plain text with other computers, too: in a network that can be trusted")
	cmd.Flags().StringVar(&s.listen, "listen", listen, "where to listen; port 0 is any that is free")
	cmd.Flags().StringVar(&s.advertise, "advertise", "", "how others reach it (default: what it listens on)")
}

// listening listens, first of all: names are for servers that can serve.
func (s *site) listening(ctx context.Context) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if s.advertise == "" {
		s.advertise = l.Addr().String()
	}
	return l, nil
}

// lookup follows a namespace until the site is closed.
func (s *site) lookup(ctx context.Context, space leasehold.Namespace) (*lookup.Lookup, error) {
	l, err := lookup.Open(ctx, lookup.Config{Namespace: space, Managers: s.managers, Credentials: s.credentials(), Logger: s.log})
	if err != nil {
		return nil, err
	}
	s.open = append(s.open, l)
	return l, nil
}

// credentials are none, but in a network that can be trusted.
func (s *site) credentials() credentials.TransportCredentials {
	if s.insecure {
		return insecure.NewCredentials()
	}
	return nil // within this computer
}

// opening is for what cannot be done without a manager. After a while it says what it waits
// for, unless that is done.
func (s *site) opening(ctx context.Context, log *slog.Logger) (_ context.Context, done func()) {
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	long := time.AfterFunc(silence, func() {
		log.Warn("waiting for a manager that answers", "managers", s.managers, "patience", joinPatience)
	})
	return ctx, func() {
		long.Stop()
		cancel()
	}
}

// client finds the servers of a namespace.
func (s *site) client(ctx context.Context, space leasehold.Namespace) (*http.Client, error) {
	l, err := s.lookup(ctx, space)
	if err != nil {
		return nil, err
	}
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: l, Key: leasehttp.PathSegment(2)})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport, Timeout: callPatience}, nil
}

func (s *site) close() error {
	var failed error
	for _, l := range s.open {
		failed = errors.Join(failed, l.Close())
	}
	return failed
}

// A server is one process of a service.
type server struct {
	site
	role role
	name string
}

func (s *server) flags(cmd *cobra.Command) {
	s.site.flags(cmd, "127.0.0.1:0")
	cmd.Flags().StringVar(&s.name, "name", "", "its name, which it keeps when it is restarted (default: how others reach it)")
}

// run serves until the context ends. Then it has its names moved to other servers, and goes
// on serving meanwhile.
func (s *server) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	s.log = logger(cmd)
	listener, err := s.listening(ctx)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the server has closed it
	defer s.close()        //nolint:errcheck // nobody asks any more
	if host, _, err := net.SplitHostPort(s.advertise); err == nil && net.ParseIP(host).IsUnspecified() {
		return fmt.Errorf("--listen is %s, which is nowhere in particular: say with --advertise how others reach it, 10.0.0.1:8101 for instance", s.listen)
	}
	joining, joined := s.opening(ctx, s.log)
	served, err := s.role.join(joining, &s.site, owner.Config{
		Namespace: s.role.space, Managers: s.managers, Addr: s.advertise, Name: leasehold.OwnerID(s.name), Logger: s.log,
		Credentials: s.credentials(), Mover: &owner.Mover{Credentials: s.credentials(), ServerCredentials: s.credentials()},
	})
	joined()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s on %s\n", s.role.space, s.advertise)
	return serve(ctx, s.log, listener, served.Handler(), served.Close)
}

// serve serves until the context ends, and while it has what it owns moved to others, if
// it owns something.
func serve(ctx context.Context, log *slog.Logger, listener net.Listener, handler http.Handler, leave func(context.Context) error) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTime}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-ended:
	}
	if leave != nil {
		log.Info("stopping: what it has goes to others first; interrupt it again to stop at once", "patience", drainPatience)
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainPatience)
		defer cancel()
		failed = errors.Join(failed, leave(draining))
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if server.Shutdown(closing) != nil { // devices that wait are to wait elsewhere
		failed = errors.Join(failed, server.Close())
	}
	return failed
}
