package access_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A file from leasehold pki is valid and gives each certificate the permissions of its
// role; the entry that leasehold token prints is valid, too.
func TestGeneratedFilesAreValid(t *testing.T) {
	parties := []pki.Party{
		{Role: pki.Manager, Name: "m1"},
		{Role: pki.Owner, Namespace: "1.0", Name: "cache-a"},
		{Role: pki.Owner, Namespace: "1.0", Name: "cache-b"},
		{Role: pki.Lookup, Namespace: "null"},
		{Role: pki.Operator, Name: "ann"},
	}
	secret, hash := pki.NewToken()
	text := pki.Policy("example.org", parties) + pki.Rule("example.org", pki.Party{Role: pki.Operator, Name: "bob"}) +
		"  - identity: token:ci\n    role: lookup\n    namespaces: [\"1.0\"]\ntokens:\n  - name: \"ci\"\n    sha256: " + hash + "\n"
	d := newFixture(t, text)
	for _, test := range []struct {
		party     int
		method    string
		namespace leasehold.Namespace
		owner     leasehold.OwnerID
		allowed   bool
	}{
		{0, leaseholdv1.AdminService_AddMember_FullMethodName, "", "", true},
		{1, leaseholdv1.OwnerService_Hold_FullMethodName, "1.0", "cache-a", true},
		{1, leaseholdv1.OwnerService_Hold_FullMethodName, "1.0", "cache-b", false},
		{2, leaseholdv1.OwnerService_Hold_FullMethodName, "1.0", "cache-b", true},
		{3, leaseholdv1.LookupService_Follow_FullMethodName, "null", "", true},
		{3, leaseholdv1.LookupService_Follow_FullMethodName, "1.0", "", false},
		{4, leaseholdv1.AdminService_RemoveMember_FullMethodName, "", "", true},
		{4, leaseholdv1.AdminService_DeleteNamespace_FullMethodName, "1.0", "", true},
	} {
		id := parties[test.party].Identity("example.org")
		if err := d.policy.Allow(access.Known(id), test.method, test.namespace, test.owner); (err == nil) != test.allowed {
			t.Errorf("%s, %s about %q: %v", id, test.method[strings.LastIndex(test.method, "/"):], test.namespace, err)
		}
	}
	conn := d.dial(&fakeCredentials{}, grpc.WithPerRPCCredentials(access.Bearer(secret, false)))
	wantCode(t, listOwners(t.Context(), conn, "1.0"), codes.OK)
	wantCode(t, listOwners(t.Context(), conn, "null"), codes.PermissionDenied)
}
