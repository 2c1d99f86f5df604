package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	"github.com/leasehold-dev/leasehold/internal/testkit/quick"
	"github.com/leasehold-dev/leasehold/lab/command/rootcmd"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/cli/clitest"
)

func TestMain(m *testing.M) {
	if named := filepath.Base(os.Args[0]); named != "leasehold-lab" {
		if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
			// A command that should have been rejected runs its own program again. Running all tests
			// here would never end.
			fmt.Fprintf(os.Stderr, "%s %s: this is the test program of leasehold-lab, not leasehold-lab\n", named, os.Args[1])
			os.Exit(2)
		}
		quick.Without("^(TestChaos(WithoutRoot|Crash|Killed|Interrupted)?|TestReplayRepeatsViolation)$|^TestScripts$/^(sim_mutants|sim_explore|sim_equal_clocks|flease)$")
	}
	testscript.Main(leak.Checked{Tests: m}, map[string]func(){"leasehold-lab": main})
}

// run runs the whole program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Run(ctx, rootcmd.New(), args, stdout, stderr)
}

// TestScripts runs the real command as a user would.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, Setup: clitest.LetScriptsBuild, Cmds: clitest.Commands(),
	})
}
