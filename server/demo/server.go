package demo

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/secure"
)

const namespace leasehold.Namespace = "presence"

// An OwnerConfig configures a server of the presence service.
type OwnerConfig struct {
	Name     leasehold.OwnerID
	Managers []string
	Users    int // number of users; the server watches the keys of the first maxWatched
	// Keeper has the server's certificate; nil for plain text.
	Keeper  *secure.Keeper
	Records io.Writer // receives the records for the oracle
	Logger  *slog.Logger
}

const (
	joinTimeout       = 30 * time.Second
	readHeaderTimeout = 5 * time.Second
	// drainTimeout bounds the time to move all statuses to other servers before a server
	// ends, and shutdownTimeout the time for the last answers after that.
	drainTimeout    = 2 * time.Minute
	shutdownTimeout = time.Second
)

// maxWatched bounds the keys that every server checks continuously. More would leave
// little processor time for anything else.
const maxWatched = 2000

// RunOwner runs a server of the presence service on a loopback port until the context ends.
// Then it moves its statuses to other servers, and serves requests meanwhile.
func RunOwner(ctx context.Context, cfg OwnerConfig) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the server has closed it
	statuses, err := join(ctx, &cfg, listener.Addr().String())
	if err != nil {
		return err
	}
	o := statuses.Owner()
	server := &http.Server{Handler: newHandler(statuses, cfg.write), ReadHeaderTimeout: readHeaderTimeout}
	watch := oracle.NewSentinel(o, o.Session(), newUsers(min(cfg.Users, maxWatched)).keys(), cfg.write)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	ended := make(chan error, 2)
	running.Go(func() { ended <- server.Serve(cfg.secured(listener)) })
	running.Go(func() { ended <- watch.Run(watching) }) // until the end: it must see that nothing is left
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	err = errors.Join(err, within(drainTimeout, statuses.Close))
	if within(shutdownTimeout, server.Shutdown) != nil {
		// Some callers have connected and sent no request. No key is left to serve.
		err = errors.Join(err, server.Close())
	}
	stop()
	running.Wait()
	return err
}

func within(d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return f(ctx)
}

// join joins the namespace, with a map of statuses as the server's state.
func join(ctx context.Context, cfg *OwnerConfig, addr string) (*leasemap.Map[status], error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	as := owner.Config{
		Namespace: namespace, Managers: cfg.Managers, Addr: addr, Name: cfg.Name, Logger: cfg.Logger,
		Load: owner.LoadReported, // the checks of the sentinel are no load
	}
	if k := cfg.Keeper; k != nil {
		as.Credentials = k.Client()
		as.Mover = &owner.Mover{Credentials: k.Client(), ServerCredentials: k.ServerWith(secure.Required)}
	}
	return leasemap.Join(ctx, as, statusMap())
}

// statusMap configures a map of statuses. They move in a binary form: JSON would take most of
// the processor time of a move.
func statusMap() leasemap.Config[status] {
	return leasemap.Config[status]{
		Max: maxUsers,
		Encode: func(dst []byte, s *status) ([]byte, error) {
			return append(binary.AppendUvarint(dst, s.Number), s.Text...), nil
		},
		Decode: func(data []byte, s *status) error {
			number, size := binary.Uvarint(data)
			if size <= 0 {
				return errors.New("no number")
			}
			s.Number, s.Text = number, string(data[size:])
			return nil
		},
	}
}

func (cfg *OwnerConfig) secured(listener net.Listener) net.Listener {
	if cfg.Keeper == nil {
		return listener
	}
	return tls.NewListener(listener, cfg.Keeper.ServerTLS(secure.Required))
}

func (cfg *OwnerConfig) write(records ...oracle.Record) error {
	return oracle.WriteRecords(cfg.Records, records...)
}
