package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcd"
)

// A system is a manager with an embedded store, and a client of it.
type system struct {
	dir   string
	addr  string
	store *counted
	m     *manager.Manager
	conn  *grpc.ClientConn
	admin leaseholdv1.AdminServiceClient
}

func startSystem(ctx context.Context) (*system, error) {
	dir, err := os.MkdirTemp("", "leasehold-scale-*")
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level()}))
	e, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: dir + "/data", Logger: log})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &system{dir: dir, addr: l.Addr().String(), store: &counted{Store: e}}
	if s.m, err = manager.Start(manager.Config{Store: s.store, Listener: l, Logger: log}); err != nil {
		return nil, err
	}
	s.conn, err = grpc.NewClient("passthrough:///"+s.addr, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, err
	}
	s.admin = leaseholdv1.NewAdminServiceClient(s.conn)
	return s, nil
}

func (s *system) create(ctx context.Context, name string) error {
	var err error
	for range 500 { // until it leads
		_, err = s.admin.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{
			Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{Name: name},
		})
		if err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return wire.ToError(err)
}

func (s *system) stop() {
	_ = s.conn.Close()
	_ = s.m.Close(context.Background())
	_ = s.store.Close()
	_ = os.RemoveAll(s.dir)
}

var _ store.Store = (*counted)(nil)

// level lets whoever looks for trouble see more.
func level() slog.Level {
	var l slog.Level
	if l.UnmarshalText([]byte(os.Getenv("SCALE_LOG"))) != nil {
		return slog.LevelError
	}
	return l
}
