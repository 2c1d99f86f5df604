package access_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// A manager with certificates and an access file.
func ExampleOpen() {
	keeper, err := secure.Open(secure.Config{Cert: "tls.crt", Key: "tls.key", Roots: "ca.crt", Revoked: "revoked.crl"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer keeper.Close()
	policy, err := access.Open(access.Config{File: "access.yaml", Revoked: keeper.Revoked})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer policy.Close() // after the manager
	m, err := manager.Start(manager.Config{
		Store: mem.NewDisk().Open(), Advertise: "m1.example.org:7400",
		ServerCredentials: keeper.Server(), ClientCredentials: keeper.Client(), Access: policy,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-m.Done()
}

func ExamplePolicy_Allow() {
	dir, err := os.MkdirTemp("", "access")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "access.yaml")
	err = os.WriteFile(file, []byte(`
rules:
  - identity: spiffe://example.org/owner/sessions/{name}
    role: owner
    namespaces: [sessions]
`), 0o600)
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := access.Open(access.Config{File: file, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer policy.Close()
	caller := access.Known("spiffe://example.org/owner/sessions/cache-a")
	const hold = leaseholdv1.OwnerService_Hold_FullMethodName
	fmt.Println(policy.Allow(caller, hold, "sessions", "cache-a"))
	fmt.Println(policy.Allow(caller, hold, "sessions", "cache-b"))
	// Output:
	// <nil>
	// call "Hold": spiffe://example.org/owner/sessions/cache-a may not use the owner name "cache-b" in namespace "sessions", only cache-a: set the owner's name, or add it to names in the access file
}

// A dashboard within the manager's process makes calls on behalf of its users.
func ExampleWithCaller() {
	var (
		policy *access.Policy
		m      *manager.Manager
		token  string // from the user's login
	)
	caller, err := policy.Authenticate(token)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := access.WithCaller(context.Background(), caller)
	status, err := m.Admin().GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: 2})
	fmt.Println(status.GetLeader(), err)
}
