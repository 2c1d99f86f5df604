package main

import (
	"context"
	"fmt"
	"net/url"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// An etcd is one member in this process, and a client of it over the loopback.
type etcd struct {
	server *embed.Etcd
	client *clientv3.Client
	dir    string
}

// startEtcd waits until it serves.
func startEtcd(ctx context.Context) (*etcd, error) {
	dir, err := os.MkdirTemp("", "bench-etcd-")
	if err != nil {
		return nil, err
	}
	e := &etcd{dir: dir}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.UnsafeNoFsync = dir, "panic", true // it takes its own end for an error
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenPeerUrls, cfg.ListenClientUrls = anywhere, anywhere
	if e.server, err = embed.StartEtcd(cfg); err != nil {
		e.close()
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	select {
	case <-e.server.Server.ReadyNotify():
	case err := <-e.server.Err():
		e.close()
		return nil, fmt.Errorf("starting etcd: %w", err)
	case <-ctx.Done():
		e.close()
		return nil, context.Cause(ctx)
	}
	e.client, err = clientv3.New(clientv3.Config{Endpoints: []string{e.server.Clients[0].Addr().String()}, Logger: zap.NewNop()})
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *etcd) close() {
	if e.client != nil {
		_ = e.client.Close()
	}
	if e.server != nil {
		e.server.Close()
	}
	_ = os.RemoveAll(e.dir)
}
