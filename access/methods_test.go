package access_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
)

// aliceHash is the placeholder for the hash of aliceToken in files.
const aliceHash = "37ccf03a27e0d8e9b4aa5be3bbdbc38b2b3ec9d1ee9ae2c0a0f2cf3af2a1b8b5"

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// expected repeats the table of methodOf by hand, from the design and in another notation.
// The letters are the permitted roles: o(wner), l(ookup), p for operator, m(anager). The
// word after them is the field of the request that has the namespace.
var expected = map[string]string{
	"/grpc.health.v1.Health/Check": "anybody", "/grpc.health.v1.Health/List": "anybody", "/grpc.health.v1.Health/Watch": "anybody",
	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      "olpm -",
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": "olpm -",

	"/leasehold.v1.OwnerService/Hold":        "o namespace",
	"/leasehold.v1.OwnerService/ReportDeath": "o namespace",
	"/leasehold.v1.LookupService/Follow":     "lpm namespace",

	"/google.cloud.autosharding.v1.AutoshardingService/WatchShardingAssignment": "lpm initial_client_config.target",

	"/leasehold.v1.AdminService/GetStatus":      "lpm -",
	"/leasehold.v1.AdminService/ListNamespaces": "lpm -",
	"/leasehold.v1.AdminService/Watch":          "lpm namespace?",
	"/leasehold.v1.AdminService/ListOwners":     "lpm namespace",
	"/leasehold.v1.AdminService/ListRanges":     "lpm namespace",
	"/leasehold.v1.AdminService/LookupKey":      "lpm namespace",
	"/leasehold.v1.AdminService/ListHistory":    "lpm namespace",
	"/leasehold.v1.AdminService/ListChanges":    "lpm namespace",
	"/leasehold.v1.AdminService/ListHotKeys":    "lpm namespace",
	"/leasehold.v1.AdminService/ListLookups":    "lpm namespace",
	"/leasehold.v1.AdminService/ListMoves":      "lpm namespace",

	"/leasehold.v1.AdminService/CreateNamespace": "p namespace.name",
	"/leasehold.v1.AdminService/UpdateNamespace": "p namespace.name",
	"/leasehold.v1.AdminService/DeleteNamespace": "p name",
	"/leasehold.v1.AdminService/DrainOwner":      "p namespace",
	"/leasehold.v1.AdminService/MoveRange":       "p namespace",
	"/leasehold.v1.AdminService/Rebalance":       "p namespace",

	"/leasehold.v1.AdminService/ListMembers":  "pm group",
	"/leasehold.v1.AdminService/AddMember":    "pm group",
	"/leasehold.v1.AdminService/RemoveMember": "pm group",

	"/leasehold.storage.v1.CouncilService/Share": "m -",
}

// A principal is a caller with one rule.
type principal struct {
	id         string // "": anonymous
	role       string // its letter; "" without a rule
	namespaces string
}

func principals() (all []principal, file string) {
	all = []principal{{}, {id: "spiffe://d/unknown/x"}}
	file = "rules:\n"
	for _, role := range []string{"owner", "lookup", "operator", "manager"} {
		for _, namespaces := range []string{"sessions", "*"} {
			if role == "manager" && namespaces != "*" {
				continue
			}
			p := principal{fmt.Sprintf("spiffe://d/%s/%s", role, strings.ReplaceAll(namespaces, "*", "all")), role[:1], namespaces}
			file += fmt.Sprintf("  - identity: %s\n    role: %s\n    namespaces: [%q]\n", p.id, role, namespaces)
			if role == "owner" {
				file += "    names: [a]\n"
			}
			if role == "operator" {
				p.role = "p"
			}
			all = append(all, p)
		}
	}
	return all, file
}

// allowed applies an entry of the table.
func (p principal) allowed(rule, namespace string) bool {
	if rule == "anybody" {
		return true
	}
	letters, where, _ := strings.Cut(rule, " ")
	if p.role == "" || !strings.Contains(letters, p.role) {
		return false
	}
	switch {
	case where == "-", where == "namespace?" && namespace == "":
		return true
	case where == "group":
		return p.namespaces == "*"
	}
	return p.namespaces == "*" || p.namespaces == namespace
}

// request makes a request about a namespace.
func request(m protoreflect.MethodDescriptor, rule, namespace string) proto.Message {
	message := newMessage(m.Input())
	at := message.ProtoReflect()
	_, where, _ := strings.Cut(rule, " ")
	fields := strings.Split(strings.TrimSuffix(where, "?"), ".")
	for i, name := range fields {
		field := at.Descriptor().Fields().ByName(protoreflect.Name(name))
		switch {
		case field == nil:
			return message
		case i == len(fields)-1:
			at.Set(field, protoreflect.ValueOfString(namespace))
		default:
			at = at.Mutable(field).Message()
		}
	}
	if holder := at.Descriptor().Fields().ByName("holder"); holder != nil {
		h := at.Mutable(holder).Message()
		h.Set(h.Descriptor().Fields().ByName("owner"), protoreflect.ValueOfString("a"))
	}
	if owner := at.Descriptor().Fields().ByName("owner"); owner != nil && strings.HasPrefix(rule, "o ") {
		at.Set(owner, protoreflect.ValueOfString("a"))
	}
	return message
}

// call calls a method with one message and returns its error.
func call(ctx context.Context, conn grpc.ClientConnInterface, m protoreflect.MethodDescriptor, in proto.Message) error {
	out := newMessage(m.Output())
	if !m.IsStreamingClient() && !m.IsStreamingServer() {
		return conn.Invoke(ctx, pathOf(m), in, out)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, pathOf(m))
	if err != nil {
		return err
	}
	if err := stream.SendMsg(in); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !m.IsStreamingClient() {
		if err := stream.CloseSend(); err != nil {
			return err
		}
	}
	return stream.RecvMsg(out)
}

// Every method is permitted or denied to every principal for every namespace as the table
// requires.
func TestEveryMethod(t *testing.T) {
	all, file := principals()
	d := newFixture(t, file)
	calls, permitted := 0, 0
	for _, p := range all {
		var ids []string
		if p.id != "" {
			ids = append(ids, p.id)
		}
		conn := d.as(ids...)
		for _, service := range services() {
			for i := range service.Methods().Len() {
				m := service.Methods().Get(i)
				rule, known := expected[pathOf(m)]
				if !known {
					t.Errorf("%s is missing in the table of expected permissions", pathOf(m))
					continue
				}
				for _, namespace := range []string{"sessions", "cache", ""} {
					calls++
					err := call(t.Context(), conn, m, request(m, rule, namespace))
					want := codes.PermissionDenied
					switch {
					case p.allowed(rule, namespace):
						want = codes.OK
						permitted++
					case p.id == "":
						want = codes.Unauthenticated
					}
					if got := status.Code(err); got != want {
						t.Errorf("%s calls %s about %q: %v (%v), want %v", p.id, pathOf(m), namespace, got, err, want)
					}
				}
			}
		}
	}
	if len(expected)*len(all)*3 != calls || permitted < 100 || permitted > calls/2 {
		t.Errorf("%d calls, %d of them permitted", calls, permitted)
	}
}

// Covers finds methods without a rule; if they are served, their calls are denied.
func TestMethodsWithoutRuleAreDenied(t *testing.T) {
	server := grpc.NewServer()
	for _, service := range services() {
		server.RegisterService(describe(service), nil)
	}
	if err := access.Covers(server.GetServiceInfo()); err != nil {
		t.Error(err)
	}
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "x.Y", Methods: []grpc.MethodDesc{{MethodName: "Z"}}}, nil)
	err := access.Covers(server.GetServiceInfo())
	if leasehold.KindOf(err) != leasehold.ErrInternal || !strings.Contains(err.Error(), "/x.Y/Z") {
		t.Errorf("%v", err)
	}
	d := newFixture(t, defaultFile)
	err = d.policy.Allow(access.Known("spiffe://d/manager/m1"), "/x.Y/Z", "sessions", "")
	if leasehold.KindOf(err) != leasehold.ErrDenied {
		t.Errorf("%v", err)
	}
	err = d.policy.Serve(access.WithCaller(t.Context(), access.Known("spiffe://d/manager/m1")), "/x.Y/Z", nil, func(context.Context) error {
		t.Error("the method was called")
		return nil
	})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("%v", err)
	}
}
