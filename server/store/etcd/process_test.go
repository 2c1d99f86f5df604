package etcd_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	"github.com/leasehold-dev/leasehold/internal/testkit/quick"
)

// serverPath is where this process builds the etcd server.
var serverPath = filepath.Join(os.TempDir(), fmt.Sprintf("leasehold-test-%d", os.Getpid()), "etcd")

// buildServer builds the etcd server once for all tests, from the required module.
var buildServer = sync.OnceValue(func() error {
	path := serverPath
	out, err := exec.Command("go", "build", "-o", path, "go.etcd.io/etcd/server/v3").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the etcd server: %w\n%s", err, out)
	}
	return nil
})

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	quick.Without("^(TestKill|TestMemberWithLostDiskIsRejected|TestGrowAndShrink|TestQuota|TestUncompacted|TestExternalStoreIsFull|TestExternalStoreWithCredentials|TestResendSoon|TestReserve|TestEmbedWithoutMajority)$")
	code := leak.Checked{Tests: m}.Run()
	_ = os.RemoveAll(filepath.Dir(serverPath)) // it may not be there
	os.Exit(code)
}

// freeAddr returns a loopback address without a listener.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// startProcess runs a program until the test ends.
func startProcess(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
}

// startServer runs etcd as a separate process and returns its client URL.
func startServer(t testing.TB, scheme string, args ...string) string {
	t.Helper()
	if err := buildServer(); err != nil {
		t.Fatal(err)
	}
	url, peer := scheme+"://"+freeAddr(t), "http://"+freeAddr(t)
	args = append([]string{
		"--name=external", "--data-dir=" + t.TempDir(), "--log-level=error",
		"--listen-client-urls=" + url, "--advertise-client-urls=" + url,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=external=" + peer,
	}, args...)
	startProcess(t, exec.Command(serverPath, args...))
	return url
}

// eventually calls try until it returns nil, and fails the test after a timeout.
func eventually(t testing.TB, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-again.C:
		}
	}
}
