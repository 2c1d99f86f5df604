package demo

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/witness"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/secure"
)

// namespace is where the presence service lives.
const namespace leasehold.Namespace = "presence"

// An OwnerConfig says how to run an owner of the presence service.
type OwnerConfig struct {
	Name     leasehold.OwnerID
	Managers []string
	Users    int // how many there are; the owner watches the keys of the first maxWatched
	// Keeper has the owner's certificate; nil for plain text.
	Keeper  *secure.Keeper
	Records io.Writer // gets what the oracle wants to know
	Logger  *slog.Logger
}

const (
	joinPatience = 30 * time.Second
	headerTime   = 5 * time.Second
	// drainPatience is how long a server may take to have its statuses moved to
	// others before it ends, and lastWords for what comes after that.
	drainPatience = 2 * time.Minute
	lastWords     = time.Second
)

// maxWatched is how many keys every owner looks at again and again. More would
// leave the processors little time for anything else.
const maxWatched = 2000

// RunOwner runs a server of the presence service on a port of loopback, until
// the context ends. Then it has its statuses moved to other servers, and goes on
// serving meanwhile.
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
	watch := witness.NewSentinel(o, o.Session(), newUsers(min(cfg.Users, maxWatched)).keys(), cfg.write)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	ended := make(chan error, 2)
	running.Go(func() { ended <- server.Serve(cfg.over(listener)) })
	running.Go(func() { ended <- watch.Run(watching) }) // to the end: it must see that nothing is left
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainPatience)
	defer cancel()
	err = errors.Join(err, o.Close(draining))
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if server.Shutdown(closing) != nil {
		// Some have connected and ask nothing. It owns nothing that they could ask
		// for.
		err = errors.Join(err, server.Close())
	}
	service.lines.close()
	stop()
	running.Wait()
	return err
}

func join(ctx context.Context, cfg OwnerConfig, addr string) (*owner.Owner, *presence, error) {
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	service := newPresence(nil, leasehold.Session{}, cfg.write)
	join := owner.Config{
		Namespace: namespace, Managers: cfg.Managers, Addr: addr, Name: cfg.Name, Logger: cfg.Logger,
		OnRevoke: func(ended []leasehold.Lease, _ leasehold.Cause) { service.clear(ended) },
		Mover:    service.mover(), Load: owner.LoadReported, // the looks of the sentinel are no work
	}
	if k := cfg.Keeper; k != nil {
		join.Credentials = k.Client()
		join.Mover.Credentials, join.Mover.ServerCredentials = k.Client(), k.ServerWith(secure.Required)
	}
	o, err := owner.Join(ctx, join)
	if err != nil {
		return nil, nil, err
	}
	service.leases, service.session = o, o.Session() // before anybody is served
	service.worked = func(key leasehold.Key) { o.Report(key, 1) }
	service.await, service.suspended = o.Await, o.Suspended
	return o, service, nil
}

// over secures a listener, if there is a certificate.
func (cfg *OwnerConfig) over(listener net.Listener) net.Listener {
	if cfg.Keeper == nil {
		return listener
	}
	secured := cfg.Keeper.ServerTLS(secure.Required)
	secured.NextProtos = []string{"http/1.1"} // a line takes the connection over
	return tls.NewListener(listener, secured)
}

// write tells the parent. If it cannot, the parent is gone.
func (cfg *OwnerConfig) write(records ...witness.Record) error {
	return witness.Write(cfg.Records, records...)
}
