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

// A manager that goes by certificates and an access file is given both.
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
	// call "Hold": spiffe://example.org/owner/sessions/cache-a may not call itself "cache-b" in namespace "sessions", but cache-a: set the owner's name, or say in the access file which it may have
}

// What answers people in this process, such as a dashboard, says on whose behalf it
// calls.
func ExampleWithCaller() {
	var (
		policy *access.Policy
		m      *manager.Manager
		token  string // that somebody has logged in with
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
