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
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

const (
	joinTime   = 30 * time.Second
	drainTime  = 2 * time.Minute
	closeTime  = 2 * time.Second
	callTime   = 30 * time.Second
	headerTime = 10 * time.Second
)

// A site is the settings of a process: its address and its managers.
type site struct {
	managers                []string
	insecure                bool // plain text in a trusted network
	name, listen, advertise string
	log                     *slog.Logger
	lookups                 map[leasehold.Namespace]*lookup.Lookup
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

// owner returns the configuration of an owner on this site.
func (s *site) owner(space leasehold.Namespace) owner.Config {
	return owner.Config{
		Namespace: space, Managers: s.managers, Addr: s.advertise, Name: leasehold.OwnerID(s.name), Logger: s.log,
		Credentials: s.credentials(), Mover: &owner.Mover{Credentials: s.credentials(), ServerCredentials: s.credentials()},
	}
}

// open opens lookups.
func (s *site) open(ctx context.Context, spaces []leasehold.Namespace) error {
	s.lookups = make(map[leasehold.Namespace]*lookup.Lookup)
	for _, space := range spaces {
		l, err := lookup.Open(ctx, lookup.Config{Namespace: space, Managers: s.managers, Credentials: s.credentials(), Logger: s.log})
		if err != nil {
			return err
		}
		s.lookups[space] = l
	}
	return nil
}

func (s *site) close() {
	for _, l := range s.lookups {
		_ = l.Close(context.Background()) // never fails
	}
}

// client returns a client of the servers of a namespace.
func (s *site) client(space leasehold.Namespace) (jsonhttp.Client, error) {
	return jsonhttp.NewClient(s.lookups[space], space, nil, callTime)
}

// serve listens, joins, prints the address, and serves until the context ends. Then it transfers
// its names to other servers, and serves them until then.
func (s *site) serve(cmd *cobra.Command, what string, uses []leasehold.Namespace, join func(ctx context.Context, s *site) (service, error)) error {
	ctx := cmd.Context()
	s.log = logger(cmd)
	listener, err := s.listener(ctx)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // already closed by the server
	defer s.close()
	joining, joined := context.WithTimeout(ctx, joinTime)
	defer joined()
	if err := s.open(joining, uses); err != nil {
		return err
	}
	served, err := join(joining, s)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s on http://%s/\n", what, s.advertise)
	server := &http.Server{Handler: served.Handler(), ReadHeaderTimeout: headerTime}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	s.log.Info("draining: state is transferred to other servers; interrupt again to stop at once", "timeout", drainTime)
	err = errors.Join(err, within(drainTime, served.Close))
	if within(closeTime, server.Shutdown) != nil { // long polls are aborted and retried elsewhere
		err = errors.Join(err, server.Close())
	}
	return err
}

func within(d time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return do(ctx)
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
	if host, _, err := net.SplitHostPort(s.advertise); err == nil && net.ParseIP(host).IsUnspecified() {
		return nil, errors.Join(l.Close(), fmt.Errorf("--listen is %s, which is no address for other processes: set --advertise, for example 10.0.0.1:8101", s.listen))
	}
	return l, nil
}
