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

// An owner on a manager's host has a certificate for that host, and may answer at an
// address where a manager should. It is told nothing, and least of all a token.
func TestOwnerPosesAsManager(t *testing.T) {
	f := newFortress(t, 1)
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
	var asked, shown atomic.Int64
	impostor := grpc.NewServer(grpc.Creds(k.Server()), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		asked.Add(1)
		if len(metadata.ValueFromIncomingContext(stream.Context(), "authorization")) > 0 {
			shown.Add(1)
		}
		return grpcstatus.Error(codes.Unimplemented, "gotcha")
	}))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = impostor.Serve(at) // until it is stopped
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
		ended, said := f.ask("operator/alice", append(args, "--timeout", "2s")...)
		if ended == 0 || !strings.Contains(said, "not a manager's certificate") {
			t.Errorf("%v ends with %d: %s", args, ended, said)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("the impostor was asked %d times, and shown a token %d times", asked.Load(), shown.Load())
	}
}
