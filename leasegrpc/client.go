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

// Config says how calls are routed. The zero Config is good for callers who say the
// key of each call with [WithKey].
type Config struct {
	// Methods says more about some methods, by their names as gRPC has them:
	// "/package.Service/Method", or "/package.Service/" for all of a service that
	// are not mentioned themselves.
	Methods map[string]Method

	// MaxOutstanding is how many calls to one server may be under way on a
	// connection; a stream counts while it is open. One more fails at once, with
	// ResourceExhausted and [leasehold.ErrLimit], and is not sent: to wait would be to
	// queue in front of a server that does not keep up, and whoever calls knows
	// better what to leave out. Default: any number.
	//
	// It is a cap of each connection, not of the server: a server that leaves the
	// lease table and comes back gets a new connection, which counts from nothing
	// while calls on the old one go on. Until those end there may be twice as many,
	// or more if it leaves again; deadlines bound how long.
	MaxOutstanding int

	// Attempts is how often a call is tried at most. See [lookup.WithAttempts], which
	// has the default.
	Attempts int

	// Lookup is how [NewClient] follows the lease table: its credentials, for instance.
	// Namespace and Managers are those of the target unless they are set here, which
	// addresses with brackets need: they cannot be listed in a target.
	Lookup lookup.Config
}

const opDial = "dial"

func (c *Config) validate() error {
	if c.MaxOutstanding < 0 {
		return leasehold.Errorf(opDial, leasehold.ErrInvalid, "", "MaxOutstanding is %d: want a number of calls, or 0 for any", c.MaxOutstanding)
	}
	if c.Attempts < 0 {
		return leasehold.Errorf(opDial, leasehold.ErrInvalid, "", "Attempts is %d: want a number, or 0 for the default", c.Attempts)
	}
	return nil
}

// client is what the interceptors of a connection share. It is immutable.
type client struct {
	lookup     *lookup.Lookup
	namespace  leasehold.Namespace
	methods    *methods
	once       []lookup.DoOption // for calls that must not be carried out twice
	idempotent []lookup.DoOption
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
		c.once = append(c.once, lookup.WithAttempts(cfg.Attempts))
	}
	c.idempotent = append(slices.Clone(c.once), lookup.WithIdempotent())
	return c, nil
}

// DialOptions makes connections to a namespace, of grpc.NewClient, route their calls
// by the table of a lookup, which must stay open for as long as they are.
//
//	options, err := leasegrpc.DialOptions(l, leasegrpc.Config{})
//	...
//	conn, err := grpc.NewClient("leasehold:///presence", append(options, credentials)...)
//
// They choose the policy with a default service config. A program that sets one of
// its own puts these options last, or names the policy in it:
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
		grpc.WithResolvers(&builder{lookup: l, most: cfg.MaxOutstanding, own: own}),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"` + keybalancer.Name + `": {}}]}`),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(), // servers are addressed one by one, which is no matter of a proxy
		// A server that is not there is tried again as often as calls are: only calls connect,
		// and gRPC's own two minutes would outlast the restart of a server.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithChainUnaryInterceptor(c.unary),
		grpc.WithChainStreamInterceptor(c.stream),
	}, nil
}

// NewClient opens a lookup and a connection whose calls are routed by it. The target says
// which managers to ask, and for which namespace:
//
//	conn, err := leasegrpc.NewClient(ctx, "leasehold://m1:7400,m2:7400/presence", leasegrpc.Config{}, credentials)
//
// The context bounds NewClient, which returns when there is a lease table, or fails as
// [lookup.Open] does: with [leasehold.ErrNotFound] if there is no such namespace, and
// with [leasehold.ErrUnavailable] if no manager answers. Close of the connection closes
// the lookup, too. The connection does not become idle, whatever the options say.
//
// The options come after those of [DialOptions], and prevail. So a default service
// config among them replaces the one that chooses the policy, and calls fail with
// Unavailable unless it names the policy, too:
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
	conn.Connect() // has the resolver built, which closes the lookup with the connection
	return conn, nil
}

// WithKey is the option of a call that is about a name: it goes to the owner of the
// name's [leasehold.KeyOf].
//
//	client.Add(ctx, request, leasegrpc.WithKey("alice"))
func WithKey(name string) grpc.CallOption { return WithRawKey(leasehold.KeyOf(name)) }

// WithRawKey is the option of a call that is about a key, for applications whose keys
// are no hashes of names.
func WithRawKey(key leasehold.Key) grpc.CallOption { return keyOption{key: key} }

// WithIdempotent is the option of a call that may be carried out twice. See
// [Method.Idempotent].
func WithIdempotent() grpc.CallOption { return idempotentOption{} }

type keyOption struct {
	grpc.EmptyCallOption
	key leasehold.Key
}

type idempotentOption struct{ grpc.EmptyCallOption }

type call struct {
	name       string
	method     *method
	key        leasehold.Key
	keyed      bool // an option has said the key
	idempotent bool
	maybe      bool // an attempt may have been carried out: no later one undoes that
}

// describe reads the options of a call. The last key prevails, as with gRPC's own.
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
		return missingKey(name, "say it with the call option leasegrpc.WithKey, or give the method a KeyField")
	}
	key, err := c.method.path.key(request)
	if err != nil {
		return missingKey(name, err.Error())
	}
	c.key = key
	return nil
}
