package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	"github.com/leasehold-dev/leasehold/internal/testkit/quick"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/cli/clitest"
	"github.com/leasehold-dev/leasehold/server/command/rootcmd"
)

func TestMain(m *testing.M) {
	if named := filepath.Base(os.Args[0]); named != "leasehold" {
		if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
			// A command that should have been rejected runs its own program again. Running all tests
			// here would never end.
			fmt.Fprintf(os.Stderr, "%s %s: this is the test program of leasehold, not leasehold\n", named, os.Args[1])
			os.Exit(2)
		}
		quick.Without("^(TestDemo(TLS|Diskless|RollingRestart|Outage)?|TestEndedDemoLeavesNothing|TestDevWithExample|TestFleaseCommands|TestBackup.*)$")
	}
	testscript.Main(leak.Checked{Tests: m}, map[string]func(){"leasehold": main})
}

// run runs the whole program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Run(ctx, rootcmd.New(), args, stdout, stderr)
}

// TestScripts runs the real command as a user would. Each script has its own fake manager at $MANAGER; $MUTE is the
// address of a listener that accepts connections and never responds, and $DEAD one without a listener.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, Setup: setUpScript, Cmds: clitest.Commands(),
	})
}

func setUpScript(env *testscript.Env) error {
	env.Setenv("TZ", "UTC")
	manager, err := (&fakeManager{unread: -1}).start(env.Defer)
	if err != nil {
		return err
	}
	env.Setenv("MANAGER", manager.addr)
	mute, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections
	if err != nil {
		return err
	}
	env.Defer(func() { _ = mute.Close() })
	env.Setenv("MUTE", mute.Addr().String())
	// The local port of an open connection is not assigned to another process, and
	// has no listener.
	dead, err := net.Dial("tcp", mute.Addr().String())
	if err != nil {
		return err
	}
	env.Defer(func() { _ = dead.Close() })
	env.Setenv("DEAD", dead.LocalAddr().String())
	return clitest.LetScriptsBuild(env)
}
