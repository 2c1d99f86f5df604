//go:build unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	"github.com/leasehold-dev/leasehold/internal/testkit/quick"
)

// programs is the directory for built programs.
var programs = filepath.Join(os.TempDir(), fmt.Sprintf("leasehold-e2e-%d", os.Getpid()))

// The programs. A binary has the name of the last part of its import path that is no
// version.
var (
	leaseholdProgram = filepath.Join(programs, "leasehold")
	etcdProgram      = filepath.Join(programs, "server")
	presenceProgram  = filepath.Join(programs, "presence")
)

func TestMain(m *testing.M) {
	if text := os.Getenv(ownerVariable); text != "" {
		os.Exit(runOwner(text, os.Stdin, os.Stdout))
	}
	if text := os.Getenv(httpServerVariable); text != "" {
		os.Exit(runHTTPServer(text))
	}
	if text := os.Getenv(grpcServerVariable); text != "" {
		os.Exit(runGRPCServer(text, os.Stdout))
	}
	quick.Only("^(TestLeaderKilled|TestOwnerKilled|TestGRPCRouting|TestBadFlags)$")
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	defer os.RemoveAll(programs) //nolint:errcheck // best effort
	out, err := exec.Command("go", "build", "-o", programs+string(filepath.Separator),
		"github.com/leasehold-dev/leasehold/cmd/leasehold", "github.com/leasehold-dev/leasehold/examples/presence", "go.etcd.io/etcd/server/v3").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "building the programs: %v\n%s", err, out)
		return 1
	}
	return leak.Checked{Tests: m}.Run()
}
