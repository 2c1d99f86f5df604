package supervisor_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// pkiVariable is the directory of the certificates.
const pkiVariable = "SUPERVISOR_TEST_PKI"

func openKeeper(dir, party string) (*secure.Keeper, error) {
	at := func(name string) string { return filepath.Join(dir, party, name) }
	return secure.Open(secure.Config{Cert: at("tls.crt"), Key: at("tls.key"), Roots: at("ca.crt")})
}

// joinOverTLS joins with the certificate of server-1, and is killed when it has leases.
func joinOverTLS() error {
	keeper, err := openKeeper(os.Getenv(pkiVariable), "owner/presence/server-1")
	if err != nil {
		return err
	}
	granted := make(chan struct{}, 1000)
	_, err = owner.Join(context.Background(), owner.Config{
		Namespace: "presence", Managers: []string{os.Getenv(managerVariable)}, Addr: "127.0.0.1:8080", Name: "server-1",
		Credentials: keeper.Client(), OnGrant: func([]leasehold.Lease) { granted <- struct{}{} },
	})
	if err != nil {
		return err
	}
	<-granted
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// startSecureManager starts a manager with access control, and returns its address, the certificates, and a client of an
// operator.
func startSecureManager(t *testing.T) (addr, dir string, operator *admin.Client) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "pki")
	ca, _, err := pki.Create(dir, "d", []pki.Party{
		{Role: pki.Manager, Name: "m1", Hosts: []string{"127.0.0.1"}},
		{Role: pki.Owner, Namespace: "presence", Name: "server-1"},
		{Role: pki.Operator, Name: "chief"},
	}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	policy, err := access.Open(access.Config{File: ca.Path("access.yaml"), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(policy.Close)
	keeper := keeperOf(t, dir, "manager/m1")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.Start(manager.Config{
		Store: mem.New(), Listener: listener, ServerCredentials: keeper.Server(), ClientCredentials: keeper.Client(), Access: policy, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	operator, err = admin.New(admin.Config{Managers: []string{listener.Addr().String()}, Credentials: keeperOf(t, dir, "operator/chief").Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = operator.Close() }) // no call is in flight
	return listener.Addr().String(), dir, operator
}

func keeperOf(t *testing.T, dir, party string) *secure.Keeper {
	t.Helper()
	k, err := openKeeper(dir, party)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// The supervisor presents the token with the certificate of its child, and a manager with access control accepts it. The
// leases would last an hour.
func TestNoticeOverTLS(t *testing.T) {
	addr, dir, operator := startSecureManager(t)
	if _, err := operator.CreateNamespace(t.Context(), admin.Namespace{Name: "presence", Lease: admin.Seconds(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	r := command(t, addr, "join over TLS")
	r.cmd.Env = append(r.cmd.Env, pkiVariable+"="+dir)
	if lines, ended := r.start(t).wait(t); ended != "signal: killed" || len(lines) != 0 {
		t.Fatalf("%s: %q, %s", ended, lines, r.log.String())
	}
	changes, _, err := operator.Changes(t.Context(), "presence", 0, 100)
	if err != nil || len(changes) == 0 || changes[0].Cause != "died" || changes[0].Owner != "server-1" {
		t.Errorf("the newest changes %+v, %v; %s", changes, err, r.log.String())
	}
}
