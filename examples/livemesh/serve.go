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
	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

const (
	joinTime   = 30 * time.Second
	silentTime = 3 * time.Second // before a process logs that it waits
	drainTime  = 2 * time.Minute
	closeTime  = 2 * time.Second
	callTime   = 30 * time.Second
	headerTime = 10 * time.Second
)

// A site is the settings of a process: its address and its managers.
type site struct {
	managers          []string
	insecure          bool // plain text in a trusted network
	listen, advertise string
	log               *slog.Logger
	open              []*lookup.Lookup
}

func (s *site) flags(cmd *cobra.Command, listen string) {
	cmd.Flags().StringSliceVar(&s.managers, "managers", []string{"127.0.0.1:7400"}, "addresses of the managers")
	cmd.Flags().BoolVar(&s.insecure, "insecure", false, "use plain text also for other machines, in a trusted network")
	cmd.Flags().StringVar(&s.listen, "listen", listen, "address to listen on; port 0 is any free port")
	cmd.Flags().StringVar(&s.advertise, "advertise", "", "address for other processes (default: --listen)")
}

// credentials returns plain-text credentials with --insecure, and nil otherwise.
func (s *site) credentials() credentials.TransportCredentials {
	if s.insecure {
		return insecure.NewCredentials()
	}
	return nil // plain text on loopback only
}

// lookup opens a lookup, which is closed with the site.
func (s *site) lookup(ctx context.Context, space leasehold.Namespace) (*lookup.Lookup, error) {
	l, err := lookup.Open(ctx, lookup.Config{Namespace: space, Managers: s.managers, Credentials: s.credentials(), Logger: s.log})
	if err == nil {
		s.open = append(s.open, l)
	}
	return l, err
}

// client returns a client of the servers of a namespace.
func (s *site) client(ctx context.Context, space leasehold.Namespace) (jsonhttp.Client, error) {
	l, err := s.lookup(ctx, space)
	if err != nil {
		return jsonhttp.Client{}, err
	}
	return jsonhttp.NewClient(l, space, nil, callTime)
}

// awaitManagers returns a context with the join timeout. It logs after silentTime, unless done
// was called.
func awaitManagers(ctx context.Context, log *slog.Logger, managers []string) (_ context.Context, done func()) {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	long := time.AfterFunc(silentTime, func() {
		log.Warn("waiting for a manager", "managers", managers, "patience", joinTime)
	})
	return ctx, func() {
		long.Stop()
		cancel()
	}
}

// serveRole runs a server. When it is interrupted it transfers its names to other servers, and
// serves them until then.
func (s *site) serveRole(cmd *cobra.Command, r role, name leasehold.OwnerID) error {
	return s.serve(cmd, string(r.space)+" on %s\n", func(ctx context.Context) (service, error) {
		if host, _, err := net.SplitHostPort(s.advertise); err == nil && net.ParseIP(host).IsUnspecified() {
			return nil, fmt.Errorf("--listen is %s, which is no address for other processes: set --advertise, for example 10.0.0.1:8101", s.listen)
		}
		return r.join(ctx, s, owner.Config{
			Namespace: r.space, Managers: s.managers, Addr: s.advertise, Name: name, Logger: s.log,
			Credentials: s.credentials(), Mover: &owner.Mover{Credentials: s.credentials(), ServerCredentials: s.credentials()},
		})
	})
}

// A stateless service has nothing to transfer.
type stateless struct{ handler http.Handler }

func (s stateless) Handler() http.Handler     { return s.handler }
func (stateless) Close(context.Context) error { return nil }

func (s *site) serveFrontend(cmd *cobra.Command) error {
	return s.serve(cmd, "frontend on http://%s/\n", func(ctx context.Context) (service, error) {
		cfg := frontend.Config{Logger: s.log}
		for _, r := range roles() {
			l, err := s.lookup(ctx, r.space)
			if err != nil {
				return nil, err
			}
			cfg.Services = append(cfg.Services, frontend.Service{Prefix: "/" + string(r.space) + "/", Lookup: l, MaxOutstanding: r.maxOutstanding})
		}
		handler, err := frontend.New(cfg)
		return stateless{handler}, err
	})
}

// serve listens, joins, prints the address, and serves until the context ends.
func (s *site) serve(cmd *cobra.Command, ready string, join func(context.Context) (service, error)) error {
	ctx := cmd.Context()
	s.log = logger(cmd)
	listener, err := s.listener(ctx)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // already closed by the server
	defer func() {
		for _, l := range s.open {
			_ = l.Close(context.Background()) // never fails
		}
	}()
	joining, joined := awaitManagers(ctx, s.log, s.managers)
	served, err := join(joining)
	joined()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), ready, s.advertise)
	server := &http.Server{Handler: served.Handler(), ReadHeaderTimeout: headerTime}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	s.log.Info("draining: state is transferred to other servers; interrupt again to stop at once", "patience", drainTime)
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	err = errors.Join(err, served.Close(draining))
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if server.Shutdown(closing) != nil { // long polls are aborted and retried elsewhere
		err = errors.Join(err, server.Close())
	}
	return err
}

// listener listens. It is called before joining: an owner must be able to serve.
func (s *site) listener(ctx context.Context) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if s.advertise == "" {
		s.advertise = l.Addr().String()
	}
	return l, nil
}
