// Command tlsmanager is a manager that speaks TLS, alone and with its tables on disk, for
// tests of the library: what its memory is measured for must not be in a test's binary,
// which the race detector may be part of.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"path/filepath"

	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/store/etcd"
)

func main() {
	listen := flag.String("listen", "", "the `address` to listen on")
	files := flag.String("files", "", "the `directory` with tls.crt, tls.key and ca.crt")
	data := flag.String("data", "", "the `directory` for the tables")
	flag.Parse()
	log.Fatal(run(*listen, *files, *data)) // it runs until it is killed
}

func run(listen, files, data string) error {
	keeper, err := secure.Open(secure.Config{
		Cert: filepath.Join(files, "tls.crt"), Key: filepath.Join(files, "tls.key"), Roots: filepath.Join(files, "ca.crt"),
	})
	if err != nil {
		return err
	}
	defer keeper.Close()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	tables, err := etcd.Embed(context.Background(), etcd.EmbedConfig{Dir: data})
	if err != nil {
		return err
	}
	m, err := manager.Start(manager.Config{
		Store: tables, Listener: listener, ServerCredentials: keeper.Server(), ClientCredentials: keeper.Client(),
	})
	if err != nil {
		return err
	}
	<-m.Done()
	return m.Err()
}
