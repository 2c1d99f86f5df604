package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/chaos/actor"
	"github.com/leasehold-dev/leasehold/internal/chaos/lan"
	"github.com/leasehold-dev/leasehold/internal/managers"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An admin asks managers, or stores, from a host of its own. It may be used from many
// goroutines at once.
type admin struct {
	*managers.Group
}

// askPatience is for one question to one manager.
const askPatience = 500 * time.Millisecond

func dialAll(from *lan.Host, addrs []string) (*admin, error) {
	g, err := managers.Dial(addrs, insecure.NewCredentials(), askPatience,
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return from.Dial(ctx, "tcp", addr) }))
	if err != nil {
		return nil, err
	}
	return &admin{g}, nil
}

// leader returns the address of the leader of the latest term that any manager knows
// of, and that term.
func (a *admin) leader(ctx context.Context) (addr string, term leasehold.Term, err error) {
	var latest uint64
	err = a.AskEach(ctx, func(ctx context.Context, to leaseholdv1.AdminServiceClient) error {
		s, err := to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		if err == nil && s.GetLeader() != "" && s.GetTerm() >= latest {
			addr, latest = s.GetLeader(), s.GetTerm()
		}
		return err
	})
	if addr == "" {
		return "", 0, leasehold.Errorf("chaos", leasehold.Unavailable, "", "nobody leads: %w", err)
	}
	return addr, leasehold.Term(latest), nil
}

// storeLeader returns which of the stores leads the others.
func (a *admin) storeLeader(ctx context.Context) (int, error) {
	return a.First(ctx, func(ctx context.Context, to grpc.ClientConnInterface) error {
		s, err := etcdserverpb.NewMaintenanceClient(to).Status(ctx, &etcdserverpb.StatusRequest{})
		if err == nil && s.GetLeader() != s.GetHeader().GetMemberId() {
			err = errors.New("it does not lead")
		}
		return err
	})
}

// create makes the namespace. It fails with [leasehold.Exists] if there is one.
func (a *admin) create(ctx context.Context, cfg *Config) error {
	return a.Ask(ctx, func(ctx context.Context, to leaseholdv1.AdminServiceClient) error {
		_, err := to.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{
			Version: wire.Version,
			Namespace: &leaseholdv1.NamespaceConfig{
				Name:   string(actor.Namespace),
				Timing: &leaseholdv1.Timing{Lease: int64(cfg.Lease), Renew: int64(cfg.Lease / 6), Drift: cfg.Drift},
			},
		})
		return err
	}, leasehold.Exists)
}

// writeKey makes a secret for managers that need one.
func writeKey(path string) error {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(hex.EncodeToString(secret)+"\n"), 0o600)
}
