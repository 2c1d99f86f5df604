package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/child"
	"github.com/leasehold-dev/leasehold/internal/pki"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
)

const (
	namespace leasehold.Namespace = "guard"
	domain                        = "guard.example"
	patience                      = time.Minute
)

// A town has two managers, one without guards and one with, and certificates for all.
type town struct {
	dir            string
	program        string
	plain, guarded string // their addresses
	processes      []*exec.Cmd
	keepers        []*secure.Keeper
}

// owner is the name of the owner with a number. The last one is who floods.
func owner(i int) string { return fmt.Sprintf("owner-%04d", i) }

func newTown(ctx context.Context, owners int) (t *town, err error) {
	t = &town{}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.dir, err = os.MkdirTemp("", "leasehold-guardcost-*"); err != nil {
		return nil, err
	}
	t.program = filepath.Join(t.dir, "leasehold")
	build := exec.CommandContext(ctx, "go", "build", "-o", t.program, "./cmd/leasehold")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building the command, from the root of the repository: %w", err)
	}
	if err := t.certify(owners); err != nil {
		return nil, err
	}
	if t.plain, err = t.manager("plain"); err != nil {
		return nil, err
	}
	if t.guarded, err = t.manager("guarded", "--tls-dir", t.files("manager", "m1"), "--access", t.files("access.yaml")); err != nil {
		return nil, err
	}
	if err := t.create(ctx, t.plain, insecure.NewCredentials()); err != nil {
		return nil, err
	}
	operator, err := t.credentials("operator", "me")
	if err != nil {
		return nil, err
	}
	err = t.create(ctx, t.guarded, operator)
	return t, err
}

// certify makes certificates for a manager, its owners, one more who floods, and an operator.
func (t *town) certify(owners int) error {
	parties := []pki.Party{
		{Role: pki.Manager, Name: "m1", Hosts: []string{"127.0.0.1"}},
		{Role: pki.Operator, Name: "me"},
	}
	for i := range owners + 1 {
		parties = append(parties, pki.Party{Role: pki.Owner, Namespace: namespace, Name: owner(i), Hosts: []string{"127.0.0.1"}})
	}
	_, _, err := pki.Create(filepath.Join(t.dir, "pki"), domain, parties, time.Now(), 24*time.Hour)
	return err
}

func (t *town) files(parts ...string) string {
	return filepath.Join(append([]string{t.dir, "pki"}, parts...)...)
}

// credentials are those of a party.
func (t *town) credentials(party ...string) (credentials.TransportCredentials, error) {
	k, err := openKeeper(t.files(party...))
	if err != nil {
		return nil, err
	}
	t.keepers = append(t.keepers, k)
	return k.Client(), nil
}

func openKeeper(dir string) (*secure.Keeper, error) {
	return secure.Open(secure.Config{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), Roots: filepath.Join(dir, "ca.crt")})
}

// manager starts a manager and returns its address.
func (t *town) manager(name string, more ...string) (string, error) {
	ports, err := child.FreePorts(2)
	if err != nil {
		return "", err
	}
	args := append([]string{"manager", "--listen", ports[0], "--http", ports[1], "--data-dir", filepath.Join(t.dir, name), "--log-level", "error"}, more...)
	cmd := exec.Command(t.program, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return "", err
	}
	t.processes = append(t.processes, cmd)
	return ports[0], nil
}

// create makes the namespace, as soon as the manager leads.
func (t *town) create(ctx context.Context, addr string, as credentials.TransportCredentials) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := dial(addr, as)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it has done its work
	admin := leaseholdv1.NewAdminServiceClient(conn)
	for {
		_, err := admin.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{
			Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{Name: string(namespace)},
		}, grpc.WaitForReady(true))
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func dial(addr string, as credentials.TransportCredentials) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, append(wire.DialOptions(), grpc.WithTransportCredentials(as))...)
}

func (t *town) close() {
	for _, p := range t.processes {
		_ = p.Process.Signal(os.Interrupt)
		_ = p.Wait()
	}
	for _, k := range t.keepers {
		k.Close()
	}
	_ = os.RemoveAll(t.dir)
}
