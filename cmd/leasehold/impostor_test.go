package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold/secure"
)

// An owner on a manager's host has a certificate for that host, and may listen on a manager's address. Clients
// close the connection before they send a request or a token.
func TestOwnerCertificateIsNoManagerCertificate(t *testing.T) {
	f := newTLSGroup(t, 1)
	dir := f.of("owner", "sessions", "a")
	k, err := secure.Open(secure.Config{
		Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), Roots: filepath.Join(dir, "ca.crt"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	at, err := net.Listen("tcp", f.addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	var requests, tokens atomic.Int64
	impostor := grpc.NewServer(grpc.Creds(k.Server()), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		requests.Add(1)
		if len(metadata.ValueFromIncomingContext(stream.Context(), "authorization")) > 0 {
			tokens.Add(1)
		}
		return grpcstatus.Error(codes.Unimplemented, "impostor")
	}))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = impostor.Serve(at) // it ends with Stop
	}()
	defer func() {
		impostor.Stop()
		<-served
	}()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("leasehold_of-an-operator-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"status"}, {"status", "--token-file", token}} {
		ended, output := f.runAs("operator/alice", append(args, "--timeout", "2s")...)
		if ended == 0 || !strings.Contains(output, "not a manager's certificate") {
			t.Errorf("%v: exit status %d: %s", args, ended, output)
		}
	}
	if requests.Load() > 0 {
		t.Errorf("the impostor received %d requests, %d of them with a token", requests.Load(), tokens.Load())
	}
}
