package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
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

	proc.Cleanup
}

// ownerName is the name of an owner. The last one floods.
func ownerName(i int) string { return fmt.Sprintf("owner-%04d", i) }

// startSite returns what it has started even with an error.
func startSite(ctx context.Context, dir string) (s *site, err error) {
	s = &site{dir: filepath.Join(dir, "pki")}
	if err := s.certify(); err != nil {
		return s, err
	}
	operator, err := s.credentials("operator", "me")
	if err != nil {
		return s, err
	}
	if s.plain, err = proc.StartManagers(ctx, 1, nil); err != nil {
		return s, err
	}
	s.Add(s.plain.Close)
	s.guarded, err = proc.StartManagers(ctx, 1, operator, "--tls-dir", s.file("manager", "m1"), "--access", s.file("access.yaml"))
	if err != nil {
		return s, err
	}
	s.Add(s.guarded.Close)
	for _, m := range []*proc.Managers{s.plain, s.guarded} {
		if err := m.CreateNamespace(ctx, &leaseholdv1.NamespaceConfig{Name: string(namespace)}); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *site) certify() error {
	parties := []pki.Party{
		{Role: pki.Manager, Name: "m1", Hosts: []string{"127.0.0.1"}},
		{Role: pki.Operator, Name: "me"},
	}
	for i := range owners + 1 {
		parties = append(parties, pki.Party{Role: pki.Owner, Namespace: namespace, Name: ownerName(i), Hosts: []string{"127.0.0.1"}})
	}
	_, _, err := pki.Create(s.dir, "security.example", parties, time.Now(), 24*time.Hour)
	return err
}

func (s *site) file(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

func (s *site) credentials(party ...string) (credentials.TransportCredentials, error) {
	k, err := openKeeper(s.file(party...))
	if err != nil {
		return nil, err
	}
	s.Add(k.Close)
	return k.Client(), nil
}

func openKeeper(dir string) (*secure.Keeper, error) {
	return secure.Open(secure.Config{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), Roots: filepath.Join(dir, "ca.crt")})
}

const roleFlood = "flood"

// floodWidth is how many of a kind there are at a time. Beyond that the computer would
// measure the flood itself.
const floodWidth = 64

var floods = []string{"messages", "calls", "connections"}

// FloodConfig is that of a flood.
type FloodConfig struct {
	Kind     string
	Manager  string // its address
	Identity string // the directory of its certificates
}

// Flood is an identity that sends too much. It is exported for net/rpc.
type Flood struct {
	keeper  *secure.Keeper
	stop    context.CancelFunc
	running sync.WaitGroup
}

// flooded calls a function while an identity floods the manager with a policy.
func (s *site) flooded(ctx context.Context, kind string, do func() ([]float64, error)) ([]float64, error) {
	config := FloodConfig{kind, s.guarded.All[0].Member.Addr, s.file("owner", string(namespace), ownerName(owners))}
	p, err := proc.Start(ctx, roleFlood, config)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return do()
}

// startFlood returns when the flood has begun.
func startFlood(_ context.Context, c FloodConfig) (*Flood, error) {
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		return nil, err
	}
	flood, ok := map[string]func(context.Context, *renewer, func()){
		"messages": messages, "calls": calls, "connections": connections,
	}[c.Kind]
	if !ok {
		return nil, errors.New("there is no flood of " + c.Kind)
	}
	keeper, err := openKeeper(c.Identity)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	f := &Flood{keeper: keeper, stop: stop}
	var begun sync.WaitGroup
	for i := range floodWidth {
		begun.Add(1)
		began := sync.OnceFunc(begun.Done)
		f.running.Go(func() {
			for ctx.Err() == nil {
				if r, err := newRenewer(ctx, c.Manager, keeper.Client(), filepath.Base(c.Identity), i); err == nil {
					flood(ctx, r, began)
					r.close()
				}
			}
			began()
		})
	}
	begun.Wait()
	return f, nil
}

// Close ends the flood.
func (f *Flood) Close() error {
	f.stop()
	f.running.Wait()
	f.keeper.Close()
	return nil
}

// messages sends requests without a pause, on streams that stay.
func messages(_ context.Context, r *renewer, begun func()) {
	if _, err := r.renew(); err != nil {
		return
	}
	begun()
	go func() {
		for {
			if _, err := r.stream.Recv(); err != nil {
				return
			}
		}
	}()
	for err := error(nil); err == nil; {
		r.request.Seq++
		err = r.stream.Send(wire.FromLeaseRequest(&r.request))
	}
}

// calls begins streams, on a connection that stays.
func calls(ctx context.Context, r *renewer, begun func()) {
	for ctx.Err() == nil {
		if _, err := r.renew(); err != nil && r.conn.GetState().String() != "READY" {
			return
		}
		begun()
		if r.open(ctx) != nil {
			return
		}
	}
}

// connections connects, renews once and closes the connection.
func connections(_ context.Context, r *renewer, begun func()) {
	_, _ = r.renew() // it may be refused by now
	begun()
}
