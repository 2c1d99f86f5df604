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
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/chaos/actor"
	"github.com/leasehold-dev/leasehold/internal/chaos/lan"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An admin asks managers, or stores, from a host of its own. It may be used from many
// goroutines at once.
type admin struct {
	conns []*grpc.ClientConn
}

// askPatience is for one question to one manager.
const askPatience = 500 * time.Millisecond

func dialAll(from *lan.Host, addrs []string) (*admin, error) {
	a := &admin{}
	for _, addr := range addrs {
		conn, err := grpc.NewClient("passthrough:///"+addr, append(wire.DialOptions(),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return from.Dial(ctx, "tcp", addr) }),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond},
				MinConnectTimeout: time.Second,
			}))...)
		if err != nil {
			a.close()
			return nil, err
		}
		a.conns = append(a.conns, conn)
	}
	return a, nil
}

func (a *admin) close() {
	for _, conn := range a.conns {
		_ = conn.Close() // whatever was on it has ended
	}
}

// ask puts a question to one manager after the other until one answers.
func (a *admin) ask(ctx context.Context, question func(context.Context, leaseholdv1.AdminServiceClient) error) error {
	var failed error
	for _, conn := range a.conns {
		asking, cancel := context.WithTimeout(ctx, askPatience)
		err := wire.ToError(question(asking, leaseholdv1.NewAdminServiceClient(conn)))
		cancel()
		if err == nil || errors.Is(err, leasehold.Exists) {
			return err
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// leader returns the address of the leader of the latest term that any manager knows
// of.
func (a *admin) leader(ctx context.Context) (addr string, err error) {
	var failed error
	var latest uint64
	for _, conn := range a.conns {
		asking, cancel := context.WithTimeout(ctx, askPatience)
		s, err := leaseholdv1.NewAdminServiceClient(conn).GetStatus(asking, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		cancel()
		if err != nil {
			failed = errors.Join(failed, wire.ToError(err))
			continue
		}
		if s.GetLeader() != "" && s.GetTerm() >= latest {
			addr, latest = s.GetLeader(), s.GetTerm()
		}
	}
	if addr == "" {
		return "", leasehold.Errorf("chaos", leasehold.Unavailable, "", "nobody leads: %w", failed)
	}
	return addr, nil
}

// storeLeader returns which of the stores leads the others.
func (a *admin) storeLeader(ctx context.Context) (int, error) {
	failed := errors.New("no store leads")
	for i, conn := range a.conns {
		asking, cancel := context.WithTimeout(ctx, askPatience)
		s, err := etcdserverpb.NewMaintenanceClient(conn).Status(asking, &etcdserverpb.StatusRequest{})
		cancel()
		if err == nil && s.GetLeader() == s.GetHeader().GetMemberId() {
			return i, nil
		}
		failed = errors.Join(failed, err)
	}
	return 0, failed
}

// create makes the namespace. It fails with [leasehold.Exists] if there is one.
func (a *admin) create(ctx context.Context, cfg *Config) error {
	return a.ask(ctx, func(ctx context.Context, to leaseholdv1.AdminServiceClient) error {
		_, err := to.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{
			Version: wire.Version,
			Namespace: &leaseholdv1.NamespaceConfig{
				Name:   string(actor.Namespace),
				Timing: &leaseholdv1.Timing{Lease: int64(cfg.Lease), Renew: int64(cfg.Lease / 6), Drift: cfg.Drift},
			},
		})
		return err
	})
}

// writeKey makes a secret for managers that need one.
func writeKey(path string) error {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(hex.EncodeToString(secret)+"\n"), 0o600)
}
