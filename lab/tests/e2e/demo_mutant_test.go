package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/leasehold-dev/leasehold/lab/mutant"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/demo"
)

// TestDemoDetectsPlantedBugs: the demo detects bugs in the libraries that violate an
// invariant without failing any request.
func TestDemoDetectsPlantedBugs(t *testing.T) {
	dual := func(r *demo.Report) uint64 { return r.DualOwnership }
	silent := func(r *demo.Report) uint64 { return r.SilentLosses }
	stopped, killed := []string{"--for", "22s"}, []string{"--for", "12s"} // long enough for the bug to take effect
	for _, test := range []struct {
		bug    string
		args   []string
		result func(*demo.Report) uint64
	}{
		{"leases-never-end", stopped, dual},
		{"recalls-ignored", stopped, dual},
		{"losses-dropped", killed, silent},
		{"state-not-installed", []string{"--rolling-restart", "--rounds", "1"}, silent},
	} {
		t.Run(test.bug, func(t *testing.T) {
			t.Parallel()
			bug, ok := mutant.Find(mutant.Demos(), test.bug)
			if !ok {
				t.Fatal("no such mutant")
			}
			r := runWith(t, bug, test.args...)
			if test.result(&r) == 0 {
				t.Errorf("the demo did not detect that %s: %+v", bug.Why(), r)
			}
		})
	}
}

// runWith runs the demo of a command with a planted bug, which must exit with the status
// for a violation.
func runWith(t *testing.T, bug mutant.Mutant, args ...string) demo.Report {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "mutant")
	if err := bug.Build(t.Context(), "./cmd/leasehold", program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{
		"demo", "--json", "--lease", "6s", "--seed", "7", "--owners", "3", "--users", "300", "--rate", "200",
	}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var ended *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &ended) || ended.ExitCode() != int(cli.StatusViolated) {
		t.Errorf("the demo ended with %v, want exit status %d\n%s", err, cli.StatusViolated, errs.String())
	}
	var r demo.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	return r
}
