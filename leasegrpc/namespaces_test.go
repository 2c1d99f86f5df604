package leasegrpc_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// A pair is a server of two namespaces, "test" and "other", with a service of each.
type pair struct{ test, other *owner.Owner }

func joinBoth(t *testing.T, n *leaseholdtest.Node) pair {
	t.Helper()
	cfg := n.OwnerConfig()
	cfg.Namespace = "other"
	other, err := owner.Join(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(ctx context.Context) { _ = other.Close(ctx) })
	return pair{n.Join(owner.Config{}), other}
}

// serve starts a server with these options, whose handlers return 1.
func (p pair) serve(n *leaseholdtest.Node, options ...grpc.ServerOption) {
	one := wrapperspb.Int64(1)
	start(n, answering{scripted{add: func(context.Context, string) (int64, error) { return 1, nil }}, one}, options...)
}

// answering answers streams.
type answering struct {
	scripted
	answer any
}

func (a answering) Chat(s grpc.ServerStream) error { return s.SendMsg(a.answer) }

// dialIn returns a connection that is routed by the table of a namespace.
func dialIn(t *testing.T, n *leaseholdtest.Node, namespace leasehold.Namespace) counterClient {
	t.Helper()
	cfg := leasegrpc.Config{Methods: byField, Lookup: n.LookupConfig()}
	cfg.Lookup.Namespace = namespace
	conn, err := leasegrpc.NewClient(patient(t), "leasehold:///"+string(namespace), cfg, n.DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(context.Context) { _ = conn.Close() })
	return counterClient{conn}
}

// chatOnce returns the first response of a stream of requests.
func chatOnce(t *testing.T, c counterClient, name string) (int64, error) {
	t.Helper()
	s, err := c.chat(patient(t), leasegrpc.WithKey(name))
	if err != nil {
		return 0, err
	}
	return s.next()
}

// A server of two namespaces checks each service with the owner of its namespace, also when the
// tables differ.
func TestServerOfTwoNamespaces(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		other := c.In("other")
		for _, name := range []string{"a", "b"} {
			p := joinBoth(t, c.Node(name))
			options, err := leasegrpc.ServerOptions(p.test, leasegrpc.ServerConfig{
				Methods: byField,
				Owners:  map[string]*owner.Owner{methodChat: p.other},
			})
			if err != nil {
				t.Fatal(err)
			}
			p.serve(c.Node(name), options...)
		}
		c.Settle()
		other.Settle()
		c.Move(leasehold.All, "a")
		other.Move(leasehold.All, "b") // the same keys
		caller, elsewhere := dialIn(t, c.Node("caller"), "test"), dialIn(t, c.Node("caller"), "other")
		for _, name := range []string{"alice", "bob"} {
			mustAdd(t, caller, name, 1)
			if n, err := chatOnce(t, elsewhere, name); n != 1 || err != nil {
				t.Errorf("%s in the other namespace: %d, %v", name, n, err)
			}
		}
		_, err := chatOnce(t, caller, "alice") // over the connection of the wrong namespace
		wantText(t, err, "server a of namespace other does not own the key")
		if kind := leasehold.KindOf(err); kind != leasehold.Other {
			t.Errorf("the rejection of another namespace has kind %v", kind)
		}
	})
}

// With the options of two namespaces, calls would need the lease on their key in both: they are
// rejected, even while the tables agree.
func TestOptionsOfTwoNamespacesAreRejected(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		other := c.In("other")
		n := c.Node("a")
		p := joinBoth(t, n)
		p.serve(n, append(protect(t, p.test), protect(t, p.other)...)...)
		c.Settle()
		other.Settle()
		for _, namespace := range []leasehold.Namespace{"test", "other"} {
			caller := dialIn(t, c.Node("caller"), namespace)
			_, errAdd := caller.add(patient(t), "alice")
			_, errChat := chatOnce(t, caller, "alice")
			for _, err := range []error{errAdd, errChat} {
				if wantText(t, err, "namespaces test and other", "ServerConfig.Owners"); status.Code(err) != codes.InvalidArgument {
					t.Errorf("code %v", status.Code(err))
				}
			}
		}
	})
}

// The options of one owner may be repeated.
func TestRepeatedOptions(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("a")
		p := pair{test: n.Join(owner.Config{})}
		p.serve(n, append(protect(t, p.test), protect(t, p.test)...)...)
		c.Settle()
		mustAdd(t, dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField}), "alice", 1)
	})
}

func TestInvalidOwners(t *testing.T) {
	for _, test := range []struct {
		owners map[string]*owner.Owner
		want   string
	}{
		{map[string]*owner.Owner{"Counter": {}}, "/package.Service/Method"},
		{map[string]*owner.Owner{methodAdd: nil}, "the owner is nil"},
		{map[string]*owner.Owner{methodAdd + "s": {}}, `no method "Adds"`},
		{map[string]*owner.Owner{"/" + service + "s/": {}}, "not linked into this program: correct the name; an entry of Owners needs"},
	} {
		_, err := leasegrpc.ServerOptions(&owner.Owner{}, leasegrpc.ServerConfig{Owners: test.owners})
		if wantText(t, err, test.want); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("kind %v", leasehold.KindOf(err))
		}
	}
}
