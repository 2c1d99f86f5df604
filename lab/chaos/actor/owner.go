package actor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
	"github.com/leasehold-dev/leasehold/owner"
)

// Namespace is the namespace of the registers.
const Namespace leasehold.Namespace = "chaos"

// An OwnerConfig configures an owner.
type OwnerConfig struct {
	Name     leasehold.OwnerID
	Addr     string // listen address
	Managers []string
	Watched  int // number of keys whose leases it records
	// LeasesOff makes the owner ignore the end of its leases, to test the checks.
	LeasesOff bool
	// KeepSuspended is that of [owner.Config]. With a short time every outage loses state.
	KeepSuspended time.Duration
	// Member, if Self is set, makes the process a member of a cluster, which needs no Managers.
	Member
	// Beside, if set, runs concurrently until the context ends.
	Beside  func(ctx context.Context, l owner.Checker) error
	Records io.Writer
	Logger  *slog.Logger
}

// AddFlags adds the flags of an owner.
func (cfg *OwnerConfig) AddFlags(f *pflag.FlagSet) {
	f.StringVar((*string)(&cfg.Name), "name", "", "name of the owner")
	f.StringVar(&cfg.Addr, "listen", "", "listen address")
	f.StringSliceVar(&cfg.Managers, "managers", nil, "addresses of managers")
	f.IntVar(&cfg.Watched, "watched", 0, "number of keys whose leases it records")
	f.DurationVar(&cfg.KeepSuspended, "keep-suspended", 0, "time for which suspended leases are kept (default until a leader replies)")
	cfg.Member.addFlags(f)
	f.BoolVar(&cfg.LeasesOff, "leases-off", false, "ignore the end of leases")
}

const (
	closePatience = 10 * time.Second
	headerTime    = 5 * time.Second
)

// RunOwner runs an owner until the context ends. Then it releases its leases.
func RunOwner(ctx context.Context, cfg OwnerConfig) error {
	listener, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return err
	}
	service := &registers{entries: make(map[string]entry)}
	o, err := cfg.join(ctx, service)
	if ctx.Err() != nil && err != nil {
		return listener.Close() // ended before it joined
	}
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	var leases owner.Checker = o.owner
	if cfg.LeasesOff {
		leases = &forever{Checker: leases, had: make(map[leasehold.Key]owner.Lease)}
	}
	service.leases = leases
	server := &http.Server{Handler: service.handler(), ReadHeaderTimeout: headerTime}
	keys := history.Keys(history.Watched(cfg.Watched))
	sentinel := oracle.NewSentinel(leases, o.owner.Session(), keys, func(r ...oracle.Record) error { return oracle.WriteRecords(cfg.Records, r...) })
	ended := make(chan error, 4)
	go func() { ended <- server.Serve(listener) }()
	go func() { ended <- sentinel.Run(context.WithoutCancel(ctx)) }() // until the owner has closed
	go func() {
		<-o.Done()
		if ctx.Err() == nil {
			ended <- o.Err()
		}
	}()
	if cfg.Beside != nil {
		go func() { ended <- cfg.Beside(ctx, leases) }()
	}
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	return errors.Join(err, o.Close(closing), server.Close())
}

// A joined process is an owner, and perhaps a manager: the membership ends with both.
type joined struct {
	membership
	owner *owner.Owner
}

type membership interface {
	Done() <-chan struct{}
	Err() error
	Close(ctx context.Context) error
}

// join joins, with retries.
func (cfg *OwnerConfig) join(ctx context.Context, service *registers) (joined, error) {
	as := owner.Config{OnRevoke: service.drop, Load: owner.LoadReported, KeepSuspended: cfg.KeepSuspended}
	if cfg.Self != "" {
		return cfg.Member.join(ctx, cfg.Addr, as, cfg.Logger)
	}
	as.Namespace, as.Managers, as.Addr, as.Name = Namespace, cfg.Managers, cfg.Addr, cfg.Name
	as.Credentials, as.Logger = insecure.NewCredentials(), cfg.Logger
	o, err := retry(ctx, cfg.Logger, "joining", func(ctx context.Context) (*owner.Owner, error) {
		return owner.Join(ctx, as)
	})
	return joined{o, o}, err
}

// forever is an owner with leases switched off: after a check has succeeded once it always does. It is safe
// for concurrent use.
type forever struct {
	owner.Checker

	mu  sync.Mutex
	had map[leasehold.Key]owner.Lease
}

func (f *forever) Check(key leasehold.Key) (owner.Lease, bool) {
	lease, ok := f.Checker.Check(key)
	f.mu.Lock()
	defer f.mu.Unlock()
	if ok {
		f.had[key] = lease
	}
	lease, ok = f.had[key]
	return lease, ok
}

func (*forever) Held(owner.Lease) bool { return true }
