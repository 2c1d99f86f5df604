package leasegrpc

import (
	"context"
	"net/url"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/keybalancer"
	"github.com/leasehold-dev/leasehold/lookup"
)

// Scheme is the scheme of targets: "leasehold:///namespace".
const Scheme = "leasehold"

type target struct {
	namespace leasehold.Namespace
	managers  []string
}

// parse parses leasehold:///namespace or leasehold://manager,manager/namespace.
func parse(u *url.URL) (target, error) {
	bad := func(format string, args ...any) (target, error) {
		return target{}, leasehold.Errorf(opDial, leasehold.ErrInvalid, u.Redacted(), format, args...)
	}
	ns, rooted := strings.CutPrefix(u.Path, "/")
	if u.Scheme != Scheme || !rooted || u.Opaque != "" {
		return bad("want leasehold:///NAMESPACE, or leasehold://HOST:PORT,HOST:PORT/NAMESPACE with the addresses of managers")
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return bad("a target may contain only managers and a namespace")
	}
	out := target{namespace: leasehold.Namespace(ns)}
	if err := out.namespace.Validate(); err != nil {
		return bad("%w", err)
	}
	if u.Host != "" {
		out.managers = strings.Split(u.Host, ",")
	}
	return out, nil
}

func (c *Config) fill(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return leasehold.Errorf(opDial, leasehold.ErrInvalid, text, "want leasehold://HOST:PORT,HOST:PORT/NAMESPACE: %w", err)
	}
	t, err := parse(u)
	if err != nil {
		return err
	}
	switch ns := c.Lookup.Namespace; {
	case ns == "":
		c.Lookup.Namespace = t.namespace
	case ns != t.namespace:
		return leasehold.Errorf(opDial, leasehold.ErrInvalid, text, "Lookup.Namespace is %q, which differs from the target's", ns)
	}
	if len(c.Lookup.Managers) == 0 {
		c.Lookup.Managers = t.managers
	}
	if len(c.Lookup.Managers) == 0 {
		return leasehold.Errorf(opDial, leasehold.ErrInvalid, text, "the target has no managers: want leasehold://HOST:PORT,HOST:PORT/%s, or Lookup.Managers", t.namespace)
	}
	return c.validate()
}

type builder struct {
	lookup         *lookup.Lookup
	maxOutstanding int
	own            bool // the resolver closes the lookup
}

func (*builder) Scheme() string { return Scheme }

// Build is called when a connection is used. Calls fail with its error.
func (b *builder) Build(given resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	t, err := parse(&given.URL)
	if have := b.lookup.Namespace(); err == nil && t.namespace != have {
		err = leasehold.Errorf(opDial, leasehold.ErrInvalid, given.String(), "the connection's lookup follows namespace %q", have)
	}
	if err != nil {
		return nil, &keybalancer.NotSent{Code: codes.Unavailable, Err: err}
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &follower{builder: b, cancel: cancel}
	r.running.Go(func() { r.follow(ctx, cc) })
	return r, nil
}

// A follower is the resolver of one connection. It updates the policy when the table
// changes.
type follower struct {
	*builder
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func (r *follower) follow(ctx context.Context, cc resolver.ClientConn) {
	for {
		changed := r.lookup.Changed()
		_ = cc.UpdateState(keybalancer.State(r.lookup, r.maxOutstanding)) // fails only while the connection is closed
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// ResolveNow does nothing: the lookup follows the table, and interceptors refresh it.
func (r *follower) ResolveNow(resolver.ResolveNowOptions) {}

// Close stops following the table, and closes the lookup if the connection owns it.
func (r *follower) Close() {
	r.cancel()
	r.running.Wait()
	if r.own {
		_ = r.lookup.Close(context.Background()) // it never fails
	}
}
