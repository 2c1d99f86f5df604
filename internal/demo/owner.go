package demo

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// namespace is where the presence service lives.
const namespace leasehold.Namespace = "presence"

// An OwnerConfig says how to run an owner of the presence service.
type OwnerConfig struct {
	Name     leasehold.OwnerID
	Managers []string
	Records  io.Writer // gets what the oracle wants to know
	Logger   *slog.Logger
}

const (
	joinPatience  = 30 * time.Second
	closePatience = 5 * time.Second
	headerTime    = 5 * time.Second
)

// RunOwner runs a server of the presence service on a port of loopback, until
// the context ends.
func RunOwner(ctx context.Context, cfg OwnerConfig) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the server has closed it
	o, service, err := join(ctx, cfg, listener.Addr().String())
	if err != nil {
		return err
	}
	server := &http.Server{Handler: service.handler(), ReadHeaderTimeout: headerTime}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
	case err = <-served:
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	return errors.Join(err, o.Close(closing), server.Shutdown(closing))
}

func join(ctx context.Context, cfg OwnerConfig, addr string) (*owner.Owner, *presence, error) {
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	service := newPresence(nil, leasehold.Session{}, cfg.write)
	o, err := owner.Join(ctx, owner.Config{
		Namespace: namespace, Managers: cfg.Managers, Addr: addr, Name: cfg.Name, Logger: cfg.Logger,
		OnRevoke: func(ended []leasehold.Lease, _ leasehold.Cause) { service.clear(ended) },
	})
	if err != nil {
		return nil, nil, err
	}
	service.leases, service.session = o, o.Session() // before anybody is served
	return o, service, nil
}

// write tells the parent. If it cannot, the parent is gone.
func (cfg *OwnerConfig) write(r record) error {
	b := r.encode()
	_, err := cfg.Records.Write(b[:])
	return err
}
