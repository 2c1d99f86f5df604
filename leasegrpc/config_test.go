package leasegrpc_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// NewClient follows the table as long as the connection is open.
func TestNewClient(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Managers: 3}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		n := c.Node("caller")
		cfg := leasegrpc.Config{Methods: byField, Lookup: n.LookupConfig()}
		cfg.Lookup.Namespace, cfg.Lookup.Managers = "", nil // from the target
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		target := "leasehold://" + c.Managers()[0] + "," + c.Managers()[1] + "/test"
		conn, err := leasegrpc.NewClient(ctx, target, cfg, n.DialOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		caller := counterClient{conn}
		mustAdd(t, caller, "alice", 1)
		c.Advance(time.Hour) // longer than gRPC's idle timeout
		mustAdd(t, caller, "alice", 2)
		if err := conn.Close(); err != nil { // closes the lookup, or the test does not end
			t.Error(err)
		}
		_, err = caller.add(patient(t), "alice")
		wantError(t, err, codes.Canceled, leasehold.ErrClosed)
	})
}

// A custom service config works if it names the policy.
func TestCustomServiceConfig(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		n := c.Node("caller")
		for config, routed := range map[string]bool{`{"loadBalancingConfig": [{"leasehold": {}}]}`: true, `{}`: false} {
			cfg := leasegrpc.Config{Methods: byField, Lookup: n.LookupConfig(), Attempts: 3}
			conn, err := leasegrpc.NewClient(patient(t), "leasehold:///test", cfg, append(n.DialOptions(), grpc.WithDefaultServiceConfig(config))...)
			if err != nil {
				t.Fatal(err)
			}
			_, err = counterClient{conn}.add(patient(t), "alice")
			if want := map[bool]codes.Code{true: codes.OK, false: codes.Unavailable}[routed]; status.Code(err) != want {
				t.Errorf("%s: %v, want %v", config, err, want)
			}
			_ = conn.Close()
		}
	})
}

// Close of an unused connection releases everything.
func TestCloseUnusedConnection(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("caller")
		conn, err := leasegrpc.NewClient(t.Context(), "leasehold:///test", leasegrpc.Config{Lookup: n.LookupConfig()}, n.DialOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	})
}

// NewClient returns errors of the target before it connects, and errors of managers when they
// occur.
func TestNewClientErrors(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("caller")
		manager := c.Managers()[0]
		for _, test := range []struct {
			target string
			kind   leasehold.Kind
			want   string
		}{
			{"presence", leasehold.ErrInvalid, "want leasehold:///NAMESPACE"},
			{"leasehold:presence", leasehold.ErrInvalid, "want leasehold:///NAMESPACE"},
			{"dns:///presence", leasehold.ErrInvalid, "want leasehold:///NAMESPACE"},
			{"leasehold://" + manager, leasehold.ErrInvalid, "want leasehold:///NAMESPACE"},
			{"leasehold:///test", leasehold.ErrInvalid, "has no managers"},
			{"leasehold://" + manager + "/", leasehold.ErrInvalid, "namespace"},
			{"leasehold://" + manager + "/a/b", leasehold.ErrInvalid, "namespace"},
			{"leasehold://" + manager + "/test?x=1", leasehold.ErrInvalid, "only managers and a namespace"},
			{"leasehold://me:secret@" + manager + "/test", leasehold.ErrInvalid, "only managers and a namespace"},
			{"leasehold://[::1]:7400,[::1]:7401/test", leasehold.ErrInvalid, "want leasehold://"},
			{"leasehold://," + manager + "/test", leasehold.ErrInvalid, "manager 1 of 2"},
			{"leasehold://m1/test", leasehold.ErrInvalid, "such as manager-1:7400"},
			{"leasehold://" + manager + "/unknown", leasehold.ErrNotFound, "unknown"},
			{"leasehold://nobody:7400/test", leasehold.ErrUnavailable, "nobody:7400"},
		} {
			cfg := leasegrpc.Config{Lookup: n.LookupConfig()}
			cfg.Lookup.Namespace, cfg.Lookup.Managers = "", nil
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			_, err := leasegrpc.NewClient(ctx, test.target, cfg, n.DialOptions()...)
			cancel()
			if wantText(t, err, test.want); !errors.Is(err, test.kind) {
				t.Errorf("%s: %v; want %v", test.target, err, test.kind)
			}
		}
		cfg := leasegrpc.Config{Lookup: n.LookupConfig(), Methods: map[string]leasegrpc.Method{"x": {}}}
		if _, err := leasegrpc.NewClient(t.Context(), "leasehold:///test", cfg, n.DialOptions()...); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("with an invalid method: %v", err)
		}
		if _, err := leasegrpc.NewClient(t.Context(), "leasehold:///other", cfg, n.DialOptions()...); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("with another namespace: %v", err)
		}
		cfg.Methods = nil
		if _, err := leasegrpc.NewClient(t.Context(), "leasehold:///test", cfg); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("without credentials: %v", err)
		}
	})
}

// With a target of another namespace than the lookup's, every call fails immediately.
func TestWrongNamespace(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		n := c.Node("caller")
		options, err := leasegrpc.DialOptions(n.Lookup(), leasegrpc.Config{Methods: byField})
		if err != nil {
			t.Fatal(err)
		}
		for target, want := range map[string]string{"leasehold:///other": `follows namespace "test"`, "leasehold:other": "want leasehold:///NAMESPACE"} {
			conn, err := grpc.NewClient(target, append(options, n.DialOptions()...)...)
			if err != nil {
				t.Fatal(err)
			}
			_, err = counterClient{conn}.add(patient(t), "alice", leasegrpc.WithIdempotent())
			wantError(t, err, codes.InvalidArgument, leasehold.ErrInvalid)
			wantText(t, err, want)
			_ = conn.Close()
		}
	})
}

// Errors of the configuration are returned before the first call.
func TestConfigErrors(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		l, o := c.Node("caller").Lookup(), c.Node("a").Join(owner.Config{})
		const health = "/grpc.health.v1.Health/"
		for _, test := range []struct {
			name   string
			method leasegrpc.Method
			want   string // "": valid
		}{
			{methodAdd, leasegrpc.Method{KeyField: "value"}, ""},
			{health, leasegrpc.Method{Unkeyed: true}, ""},
			{"/not.Linked/Method", leasegrpc.Method{Idempotent: true}, ""},
			{health + "Check", leasegrpc.Method{KeyField: "service"}, ""},
			{health + "Watch", leasegrpc.Method{KeyField: "service"}, ""},
			{"Add", leasegrpc.Method{}, "/package.Service/Method"},
			{"/a/b/c", leasegrpc.Method{}, "/package.Service/Method"},
			{"//b", leasegrpc.Method{}, "/package.Service/Method"},
			{methodAdd, leasegrpc.Method{KeyField: "value", Unkeyed: true}, "want one of them"},
			{methodAdd, leasegrpc.Method{KeyField: "user"}, `has no field "user"; it has value`},
			{methodAdd, leasegrpc.Method{KeyField: "value.name"}, "which has no fields"},
			{methodAdd, leasegrpc.Method{KeyField: "."}, "has no field"},
			{methodChat, leasegrpc.Method{KeyField: "value"}, "stream of requests"},
			{"/" + service + "/", leasegrpc.Method{KeyField: "value"}, "stream of requests"},
			{health, leasegrpc.Method{KeyField: "service"}, `has no field "service"; it has none`}, // List
			{"/" + service + "/Sub", leasegrpc.Method{KeyField: "value"}, `no method "Sub"`},
			{"/not.Linked/Method", leasegrpc.Method{KeyField: "value"}, "the service is not linked"},
			{"/google.protobuf.StringValue/Method", leasegrpc.Method{KeyField: "value"}, "the service is not linked"},
			{"/" + serviceOdd + "/Number", leasegrpc.Method{KeyField: "value"}, "of type int64"},
			{"/" + serviceOdd + "/Many", leasegrpc.Method{KeyField: "paths"}, "is repeated"},
			{"/" + serviceOdd + "/Many", leasegrpc.Method{KeyField: "paths.x"}, "is repeated"},
			{"/" + serviceOdd + "/Bytes", leasegrpc.Method{KeyField: "value"}, ""},
			{"/" + serviceOdd + "/Nested", leasegrpc.Method{KeyField: "source_context.file_name"}, ""},
			{"/" + serviceOdd + "/Nested", leasegrpc.Method{KeyField: "source_context"}, "of type message"},
		} {
			methods := map[string]leasegrpc.Method{test.name: test.method}
			_, client := leasegrpc.DialOptions(l, leasegrpc.Config{Methods: methods})
			_, server := leasegrpc.ServerOptions(o, leasegrpc.ServerConfig{Methods: methods})
			for _, err := range []error{client, server} {
				if test.want == "" && err != nil {
					t.Errorf("%s %+v: %v", test.name, test.method, err)
				}
				if test.want != "" {
					if wantText(t, err, test.want); !errors.Is(err, leasehold.ErrInvalid) {
						t.Errorf("%s %+v: %v", test.name, test.method, err)
					}
				}
			}
		}
		for _, cfg := range []leasegrpc.Config{{MaxOutstanding: -1}, {Attempts: -1}} {
			if _, err := leasegrpc.DialOptions(l, cfg); !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("%+v: %v", cfg, err)
			}
		}
	})
}
