// Package etcd keeps a manager group's data in etcd: in an existing cluster
// ([Open]), or in an embedded member inside this process ([Embed]),
// alone or in a group with those of the other managers.
//
// No lease, TTL or clock of etcd is used. Requests stay within etcd's default
// limits, 128 operations and 1.5 MiB, whatever the size of a table.
package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
	"github.com/leasehold-dev/leasehold/secret"
)

// Defaults.
const (
	DefaultPrefix = "/leasehold/"
	// requestTimeout bounds each request. Below a leader's TTL it would permit a retry in time; below
	// the duration of an election in etcd it would cause unnecessary failures.
	requestTimeout = 5 * time.Second
	// dialTimeout bounds Open if its context does not.
	dialTimeout = 5 * time.Second
	// manyRevisions is the number of revisions that a leader writes in a day or two: renewing its
	// record every two thirds of a second makes 130,000 per day.
	manyRevisions = 200_000
)

// A Config describes a cluster.
type Config struct {
	Endpoints []string // host:port or URLs; at least one

	// Prefix is the prefix of all keys, by default [DefaultPrefix]. A missing trailing slash is
	// added. Groups of managers that share a cluster have different prefixes.
	Prefix string

	TLS      *tls.Config // nil: without TLS
	Username string      // empty: no authentication
	Password secret.Text

	Logger *slog.Logger // nil: the default logger
}

// A Store is a store in an etcd cluster. It implements store.Store.
type Store struct {
	*kv.Store
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Store = (*Embedded)(nil)
)

func (c *Config) validate() error {
	bad := func(text string) error { return leasehold.Errorf("open etcd", leasehold.ErrInvalid, "", "%s", text) }
	if len(c.Endpoints) == 0 {
		return bad("there are no endpoints: name at least one, such as 127.0.0.1:2379")
	}
	if slices.ContainsFunc(c.Endpoints, func(e string) bool { return strings.Contains(e, "@") }) {
		return bad("an endpoint has a user or a password in it, and endpoints are logged: use Username and Password")
	}
	if c.Username == "" && c.Password.Len() > 0 {
		return bad("there is a password, and no user name to go with it")
	}
	c.Prefix = strings.TrimSuffix(cmp.Or(c.Prefix, DefaultPrefix), "/") + "/"
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return nil
}

// Open connects to a cluster. It returns after a response of the cluster, or with an error that names
// the endpoints: of kind Unavailable without a response before the context ends, or within five
// seconds without a deadline, and of kind Invalid if they reject the credentials.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	const op = "open etcd"
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	subject := strings.Join(cfg.Endpoints, ",")
	client, err := dial(ctx, cfg)
	if err != nil {
		return nil, unreachable(op, subject, err)
	}
	db := &database{client: client, prefix: cfg.Prefix, close: client.Close}
	if err := awaitResponse(ctx, func(ctx context.Context) error { _, err := db.View().Get(ctx, "record"); return err }); err != nil {
		_ = client.Close() // the first error matters
		return nil, unreachable(op, subject, err)
	}
	if revisions := db.uncompacted(ctx); revisions > manyRevisions {
		cfg.Logger.Warn("this etcd cluster was never compacted, and fills up: start its members with --auto-compaction-retention=10m",
			"endpoints", subject, "revisions", revisions)
	}
	return &Store{kv.New(db, kv.Config{})}, nil
}

// retryInterval is the pause between two reads of awaitResponse.
const retryInterval = 100 * time.Millisecond

// awaitResponse repeats a read until the cluster has executed it: members reject requests while they elect a leader.
func awaitResponse(ctx context.Context, read func(context.Context) error) error {
	for {
		err := read(ctx)
		if leasehold.KindOf(translate(err)) != leasehold.ErrUnavailable || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return err
		}
	}
}

// dial creates a client. With a user name the client requests a token, with a timeout instead of a
// context.
func dial(ctx context.Context, cfg Config) (*clientv3.Client, error) {
	deadline, _ := ctx.Deadline()                       // set by Open
	wait := max(time.Millisecond, time.Until(deadline)) // 0 means no timeout
	return clientv3.New(clientv3.Config{
		Endpoints:            cfg.Endpoints,
		DialTimeout:          wait,
		DialKeepAliveTime:    10 * time.Second, // a server may refuse more than one in five seconds
		DialKeepAliveTimeout: requestTimeout,
		TLS:                  cfg.TLS,
		Username:             cfg.Username,
		Password:             cfg.Password.Reveal(),
		Logger:               zapLogger(cfg.Logger, slog.LevelError), // warnings include every retry
		DialOptions:          []grpc.DialOption{grpc.WithConnectParams(connecting)},
	})
}

// connecting limits the backoff for unreachable members. The default maximum is two minutes, and
// leases expire within seconds.
var connecting = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
	MinConnectTimeout: 5 * time.Second, // for TLS with an overloaded member
}

func unreachable(op, subject string, err error) error {
	err = translate(err)
	kind := leasehold.ErrUnavailable
	if leasehold.KindOf(err) == leasehold.ErrInvalid {
		kind = leasehold.ErrInvalid
	}
	return leasehold.Errorf(op, kind, subject, "%w", err)
}
