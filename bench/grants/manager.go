package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/store/etcd"
)

// A managerMember is a manager, in a process of its own, whose store is a cluster of
// etcd.
type managerMember struct {
	m     *manager.Manager
	store *etcd.Store
}

func startManager(ctx context.Context, args []string) (cast.Member, string, error) {
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	endpoints := flags.String("etcd", "", "where the members of etcd are, separated by commas")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	ctx, cancel := context.WithTimeout(ctx, cast.StartLimit)
	defer cancel()
	s, err := etcd.Open(ctx, etcd.Config{Endpoints: strings.Split(*endpoints, ","), Logger: log})
	if err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", errors.Join(err, s.Close())
	}
	m, err := manager.Start(manager.Config{Store: s, Listener: l, Logger: log})
	if err != nil {
		return nil, "", errors.Join(err, s.Close())
	}
	return &managerMember{m, s}, l.Addr().String(), nil
}

func (m *managerMember) Obey(_ context.Context, o cast.Order) (cast.Answer, error) {
	if o.Do != cast.OrderCPU {
		return cast.Answer{}, cast.UnknownOrder(o)
	}
	return cast.Answer{CPU: int64(cast.CPUTime())}, nil
}

func (m *managerMember) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), cast.EndLimit/2)
	defer cancel()
	return errors.Join(m.m.Close(ctx), m.store.Close())
}
