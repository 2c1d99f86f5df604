package fenceetcd_test

import (
	"context"
	"fmt"
	"os"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/fenceetcd"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
)

// Server A owns alice, is paused, and writes after B has become the owner.
func ExampleGuard_Txn() {
	client, stop, err := someEtcd()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	var guard fenceetcd.Guard
	setAddress := func(generation leasehold.Generation, address string) {
		_, err := guard.Txn(context.Background(), client, "alice", generation).
			Then(clientv3.OpPut("/presence/alice", address)).
			Commit()
		fmt.Println(address, "wrote:", err)
	}
	const ofA, ofB = 41, 43 // the generations of their leases
	setAddress(ofA, "A")
	setAddress(ofB, "B")
	setAddress(ofA, "A")
	// Output:
	// A wrote: <nil>
	// B wrote: <nil>
	// A wrote: fence "alice": generation 41 is older than 43: another owner has taken over, and nothing was written
}

// someEtcd starts one in this process.
func someEtcd() (*clientv3.Client, func(), error) {
	dir, err := os.MkdirTemp("", "leasehold-example-")
	if err != nil {
		return nil, nil, err
	}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.ListenClientUrls, cfg.ListenPeerUrls = dir, nil, nil
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		_ = os.RemoveAll(dir) // the rest is in the temporary directory
		return nil, nil, err
	}
	<-server.Server.ReadyNotify()
	client := v3client.New(server.Server)
	return client, func() {
		_ = client.Close() // errors do not matter
		server.Close()
		_ = os.RemoveAll(dir)
	}, nil
}
