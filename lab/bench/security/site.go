package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
)

const namespace leasehold.Namespace = "security"

// A site is two managers, one in plain text and one with certificates and a policy, and
// the certificates of all clients.
type site struct {
	dir            string
	plain, guarded *proc.Managers
	keepers        []*secure.Keeper
}

// ownerName is the name of an owner. The last one floods.
func ownerName(i int) string { return fmt.Sprintf("owner-%04d", i) }

// startSite returns what it has started even with an error.
func startSite(ctx context.Context) (s *site, err error) {
	s = &site{}
	if s.dir, err = os.MkdirTemp("", "bench-security-"); err != nil {
		return s, err
	}
	if err := s.certify(); err != nil {
		return s, err
	}
	operator, err := s.credentials("operator", "me")
	if err != nil {
		return s, err
	}
	if s.plain, err = proc.StartManagers(ctx, proc.ManagersConfig{Count: 1}); err != nil {
		return s, err
	}
	s.guarded, err = proc.StartManagers(ctx, proc.ManagersConfig{
		Count: 1, Credentials: operator, Args: []string{"--tls-dir", s.file("manager", "m1"), "--access", s.file("access.yaml")},
	})
	if err != nil {
		return s, err
	}
	for _, m := range []*proc.Managers{s.plain, s.guarded} {
		if err := m.CreateNamespace(ctx, &leaseholdv1.NamespaceConfig{Name: string(namespace)}); err != nil {
			return s, err
		}
	}
	return s, nil
}

// certify makes certificates for a manager, an operator, and the owners.
func (s *site) certify() error {
	parties := []pki.Party{
		{Role: pki.Manager, Name: "m1", Hosts: []string{"127.0.0.1"}},
		{Role: pki.Operator, Name: "me"},
	}
	for i := range owners + 1 {
		parties = append(parties, pki.Party{Role: pki.Owner, Namespace: namespace, Name: ownerName(i), Hosts: []string{"127.0.0.1"}})
	}
	_, _, err := pki.Create(filepath.Join(s.dir, "pki"), "security.example", parties, time.Now(), 24*time.Hour)
	return err
}

func (s *site) file(parts ...string) string {
	return filepath.Join(append([]string{s.dir, "pki"}, parts...)...)
}

// credentials are those of a party.
func (s *site) credentials(party ...string) (credentials.TransportCredentials, error) {
	k, err := openKeeper(s.file(party...))
	if err != nil {
		return nil, err
	}
	s.keepers = append(s.keepers, k)
	return k.Client(), nil
}

func openKeeper(dir string) (*secure.Keeper, error) {
	return secure.Open(secure.Config{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), Roots: filepath.Join(dir, "ca.crt")})
}

func (s *site) ownerCredentials(i int) (credentials.TransportCredentials, error) {
	return s.credentials("owner", string(namespace), ownerName(i))
}

func plainText(int) (credentials.TransportCredentials, error) { return nil, nil }

func (s *site) close() {
	for _, m := range []*proc.Managers{s.plain, s.guarded} {
		if m != nil {
			m.Close()
		}
	}
	for _, k := range s.keepers {
		k.Close()
	}
	_ = os.RemoveAll(s.dir)
}
