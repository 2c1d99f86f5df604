package leasegrpc_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/sourcecontextpb"
	"google.golang.org/protobuf/types/known/typepb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// A KeyField may be a string or bytes, also in embedded messages. Requests without a key fail
// before they are sent.
func TestKeyFields(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("a")
		o := n.Join(owner.Config{})
		methods := map[string]leasegrpc.Method{
			"/" + serviceOdd + "/":       {Idempotent: true},
			"/" + serviceOdd + "/Bytes":  {KeyField: "value"},
			"/" + serviceOdd + "/Nested": {KeyField: "source_context.file_name"},
		}
		options, err := leasegrpc.ServerOptions(o, leasegrpc.ServerConfig{Methods: methods})
		if err != nil {
			t.Fatal(err)
		}
		var asked leasehold.Key
		startOdd(n, func(ctx context.Context) {
			lease, _ := leasegrpc.Lease(ctx)
			asked = lease.Key
		}, options...)
		c.Settle()
		caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: methods})
		foreign := dynamicpb.NewMessage((&wrapperspb.StringValue{}).ProtoReflect().Descriptor())
		foreign.Set(foreign.Descriptor().Fields().ByName("value"), protoreflect.ValueOfString("alice"))
		for _, test := range []struct {
			method  string
			request any
			want    string // "": the request has alice's key
		}{
			{"Bytes", wrapperspb.Bytes([]byte("alice")), ""},
			{"Nested", &typepb.Type{SourceContext: &sourcecontextpb.SourceContext{FileName: "alice"}}, ""},
			{"Nested", &typepb.Type{Name: "alice"}, `field "source_context.file_name" is empty`},
			{"Bytes", wrapperspb.Bytes(nil), "is empty"},
			{"Bytes", wrapperspb.String("alice"), "is a google.protobuf.StringValue"},
			{"Bytes", foreign, "is a google.protobuf.StringValue"},
			{"Bytes", "alice", "not a protobuf message"},
			{"Number", wrapperspb.Int64(1), "use the call option"},
		} {
			asked = 0
			err := caller.Invoke(patient(t), "/"+serviceOdd+"/"+test.method, test.request, new(emptypb.Empty))
			switch {
			case test.want != "":
				wantError(t, err, codes.InvalidArgument, leasehold.ErrInvalid)
				wantText(t, err, test.want)
			case err != nil || asked != leasehold.KeyOf("alice"):
				t.Errorf("%s: the server got keys %v: %v", test.method, asked, err)
			}
		}
		if err := caller.Invoke(patient(t), "/"+serviceOdd+"/Number", wrapperspb.Int64(1), new(emptypb.Empty), leasegrpc.WithRawKey(42)); err != nil || asked != 42 {
			t.Errorf("the server got keys %v: %v", asked, err)
		}
	})
}

// Calls of an unkeyed method need no key, and their handlers have no lease; other methods of the
// service do.
func TestUnkeyedMethods(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("a")
		options, err := leasegrpc.ServerOptions(n.Join(owner.Config{}), leasegrpc.ServerConfig{Methods: map[string]leasegrpc.Method{
			"/" + serviceOdd + "/":       {Unkeyed: true},
			"/" + serviceOdd + "/Number": {},
		}})
		if err != nil {
			t.Fatal(err)
		}
		leased := true
		startOdd(n, func(ctx context.Context) { _, leased = leasegrpc.Lease(ctx) }, options...)
		caller := plain(t, c.Node("caller"), "a")
		if err := caller.Invoke(patient(t), "/"+serviceOdd+"/Bytes", wrapperspb.Bytes(nil), new(emptypb.Empty)); err != nil || leased {
			t.Errorf("%v; with a lease: %t", err, leased)
		}
		err = caller.Invoke(patient(t), "/"+serviceOdd+"/Number", wrapperspb.Int64(1), new(emptypb.Empty))
		if wantText(t, err, "has no key"); status.Code(err) != codes.InvalidArgument {
			t.Error(err)
		}
	})
}
