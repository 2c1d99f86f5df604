package leasegrpc

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/keybalancer"
	"github.com/leasehold-dev/leasehold/lookup"
)

// Config configures the routing of calls. The zero Config is for callers that set the key of
// each call with [WithKey].
type Config struct {
	// Methods configures methods, by their full names "/package.Service/Method", or
	// "/package.Service/" for the other methods of a service.
	Methods map[string]Method

	// MaxOutstanding limits the calls in progress on the connection to one server; a
	// stream counts while it is open. Further calls fail immediately with
	// ResourceExhausted and [leasehold.ErrLimit], and are not sent: a queue would only grow
	// in front of an overloaded server, and the application can shed load better.
	// Default: no limit.
	//
	// It is a limit per connection, not per server: a server that leaves the lease table
	// and returns gets a new connection, while calls on the old one continue. Until those
	// end there may be twice as many calls; deadlines bound this time.
	MaxOutstanding int

	// Attempts is the maximum number of attempts of a call: see [lookup.WithAttempts],
	// also for the default.
	Attempts int

	// Lookup configures the lookup of [NewClient], for example its credentials. Namespace
	// and Managers default to those of the target. Addresses with brackets, and names with
	// dns:/// or srv:///, cannot be part of a target and must be set here.
	Lookup lookup.Config
}

const opDial = "dial"

func (c *Config) validate() error {
	if c.MaxOutstanding < 0 {
		return leasehold.Errorf(opDial, leasehold.ErrInvalid, "", "MaxOutstanding is %d: want a number of calls, or 0 for no limit", c.MaxOutstanding)
	}
	if c.Attempts < 0 {
		return leasehold.Errorf(opDial, leasehold.ErrInvalid, "", "Attempts is %d: want a number, or 0 for the default", c.Attempts)
	}
	return nil
}

// client is the shared state of a connection's interceptors. It is immutable.
type client struct {
	lookup        *lookup.Lookup
	namespace     leasehold.Namespace
	methods       *methods
	notIdempotent []lookup.DoOption // for calls that must not be executed twice
	idempotent    []lookup.DoOption
}

func newClient(l *lookup.Lookup, cfg *Config) (*client, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m, err := newMethods(opDial, cfg.Methods)
	if err != nil {
		return nil, err
	}
	c := &client{lookup: l, namespace: l.Namespace(), methods: m}
	if cfg.Attempts > 0 {
		c.notIdempotent = append(c.notIdempotent, lookup.WithAttempts(cfg.Attempts))
	}
	c.idempotent = append(slices.Clone(c.notIdempotent), lookup.WithIdempotent())
	return c, nil
}

// DialOptions returns options for grpc.NewClient with which a connection routes its calls by
// the table of a lookup. The lookup must stay open as long as the connection.
//
//	options, err := leasegrpc.DialOptions(l, leasegrpc.Config{})
//	...
//	conn, err := grpc.NewClient("leasehold:///presence", append(options, credentials)...)
//
// They select the balancing policy with a default service config. A program with its own
// service config must put these options last, or name the policy in its config:
// {"loadBalancingConfig": [{"leasehold": {}}], ...}.
func DialOptions(l *lookup.Lookup, cfg Config) ([]grpc.DialOption, error) {
	return dialOptions(l, &cfg, false)
}

func dialOptions(l *lookup.Lookup, cfg *Config, own bool) ([]grpc.DialOption, error) {
	c, err := newClient(l, cfg)
	if err != nil {
		return nil, err
	}
	return []grpc.DialOption{
		grpc.WithResolvers(&builder{lookup: l, maxOutstanding: cfg.MaxOutstanding, own: own}),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"` + keybalancer.Name + `": {}}]}`),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(), // the connections are to individual servers
		// The backoff is short because only calls connect, and are themselves rate limited.
		// gRPC's default of up to two minutes would outlast the restart of a server.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithChainUnaryInterceptor(c.unary),
		grpc.WithChainStreamInterceptor(c.stream),
	}, nil
}

// NewClient opens a lookup and a connection that routes calls by it. The target has the
// addresses of managers and the namespace:
//
//	conn, err := leasegrpc.NewClient(ctx, "leasehold://m1:7400,m2:7400/presence", leasegrpc.Config{}, credentials)
//
// NewClient returns when the lookup has a lease table, or fails like [lookup.Open]: with
// [leasehold.ErrNotFound] if the namespace does not exist, and with
// [leasehold.ErrUnavailable] if no manager responds until ctx ends. Closing the connection
// closes the lookup. The connection never becomes idle; an idle timeout in options is
// ignored.
//
// The options override those of [DialOptions]. A default service config in options must
// therefore name the policy, or calls fail with Unavailable:
// {"loadBalancingConfig": [{"leasehold": {}}], ...}.
func NewClient(ctx context.Context, target string, cfg Config, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	if err := cfg.fill(target); err != nil {
		return nil, err
	}
	l, err := lookup.Open(ctx, cfg.Lookup)
	if err != nil {
		return nil, err
	}
	conn, err := dial(l, target, &cfg, options)
	if err != nil {
		_ = l.Close(context.Background()) // it never fails
	}
	return conn, err
}

func dial(l *lookup.Lookup, target string, cfg *Config, options []grpc.DialOption) (*grpc.ClientConn, error) {
	ours, err := dialOptions(l, cfg, true)
	if err != nil {
		return nil, err
	}
	options = slices.Concat(ours, options, []grpc.DialOption{grpc.WithIdleTimeout(0)})
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		return nil, leasehold.Errorf(opDial, leasehold.ErrInvalid, target, "%w", err)
	}
	conn.Connect() // builds the resolver, which closes the lookup with the connection
	return conn, nil
}

// WithKey is a call option: the call is sent to the owner of [leasehold.KeyOf] of the name.
//
//	client.Add(ctx, request, leasegrpc.WithKey("alice"))
func WithKey(name string) grpc.CallOption { return WithRawKey(leasehold.KeyOf(name)) }

// WithRawKey is a call option like [WithKey], for applications whose keys are not hashes of
// names.
func WithRawKey(key leasehold.Key) grpc.CallOption { return keyOption{key: key} }

// WithIdempotent is a call option: the call may be executed twice. See [Method.Idempotent].
func WithIdempotent() grpc.CallOption { return idempotentOption{} }

type keyOption struct {
	grpc.EmptyCallOption
	key leasehold.Key
}

type idempotentOption struct{ grpc.EmptyCallOption }

type call struct {
	name          string
	method        *method
	key           leasehold.Key
	keyed         bool // the key is from an option
	idempotent    bool
	indeterminate bool // an attempt may have been executed
}

// describe reads the options of a call. The last of several keys is used.
func (c *client) describe(name string, options []grpc.CallOption) call {
	m := c.methods.find(name)
	out := call{name: name, method: m, idempotent: m.Idempotent}
	for _, o := range options {
		switch o := o.(type) {
		case keyOption:
			out.key, out.keyed = o.key, true
		case idempotentOption:
			out.idempotent = true
		}
	}
	return out
}

func (c *call) find(name string, request any) error {
	if c.keyed {
		return nil
	}
	if c.method.path == nil {
		return missingKey(name, "use the call option leasegrpc.WithKey, or configure a KeyField for the method")
	}
	key, err := c.method.path.key(request)
	if err != nil {
		return missingKey(name, err.Error())
	}
	c.key = key
	return nil
}
