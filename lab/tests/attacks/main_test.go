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

// programs is where this process builds what it runs.
var programs = filepath.Join(os.TempDir(), fmt.Sprintf("leasehold-attacks-%d", os.Getpid()))

func leaseholdProgram() string { return filepath.Join(programs, "leasehold") }

func TestMain(m *testing.M) {
	if text := os.Getenv(crowdVariable); text != "" {
		os.Exit(beCrowd(text, os.Stdin, os.Stdout))
	}
	quick.Only("^(TestReplay|TestTokens|TestRevocation)$")
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	defer os.RemoveAll(programs) //nolint:errcheck // there is nobody left to tell
	out, err := exec.Command("go", "build", "-o", programs+string(filepath.Separator),
		"github.com/leasehold-dev/leasehold/cmd/leasehold").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "building what the tests run: %v\n%s", err, out)
		return 1
	}
	// Most of the time is spent waiting for what is slow on purpose.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("8") // it is a number
	}
	status := leak.Checked{Tests: m}.Run()
	tell(os.Stdout)
	return status
}
