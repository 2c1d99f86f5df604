//go:build linux

package attacks

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	"github.com/leasehold-dev/leasehold/internal/testkit/quick"
)

// programs is the directory for built programs.
var programs = filepath.Join(os.TempDir(), fmt.Sprintf("leasehold-attacks-%d", os.Getpid()))

func leaseholdProgram() string { return filepath.Join(programs, "leasehold") }

func TestMain(m *testing.M) {
	if text := os.Getenv(floodVariable); text != "" {
		os.Exit(runFloodProcess(text, os.Stdin, os.Stdout))
	}
	quick.Only("^(TestReplay|TestTokens|TestRevocation)$")
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	defer os.RemoveAll(programs) //nolint:errcheck // best effort
	out, err := exec.Command("go", "build", "-o", programs+string(filepath.Separator),
		"github.com/leasehold-dev/leasehold/cmd/leasehold").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "building the command: %v\n%s", err, out)
		return 1
	}
	// Most cases wait for slow connections: more of them can run in parallel.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("8") // it is a number
	}
	status := leak.Checked{Tests: m}.Run()
	printSummary(os.Stdout)
	return status
}
