package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/demo"
	"github.com/leasehold-dev/leasehold/internal/mutant"
)

// TestDemoSeesWhatIsWrong plants bugs in the libraries, each of which breaks one
// promise without a trace in the requests, and has the demo find them.
func TestDemoSeesWhatIsWrong(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute, because it builds and runs four commands with bugs in them: runs without -short")
	}
	const publish = `	if !protocol.SameLeases(a.held, v.Leases) {
		a = newAreas(v.Leases)
	}
	o.holding.Store(&holding{until: v.Until, `
	dual := func(r *demo.Report) uint64 { return r.DualOwnership }
	silent := func(r *demo.Report) uint64 { return r.SilentLosses }
	stopped, killed := []string{"--for", "22s"}, []string{"--for", "12s"} // the time that it takes
	for _, test := range []struct {
		bug  mutant.Mutant
		args []string
		seen func(*demo.Report) uint64
	}{
		{mutant.Mutant{
			Name: "leases-never-end",
			Why:  "an owner that was stopped goes on to believe in leases that are over",
			File: "owner/act.go",
			Old:  publish,
			New: `	if len(v.Leases) > 0 && !protocol.SameLeases(a.held, v.Leases) {
		a = newAreas(v.Leases)
	}
	o.holding.Store(&holding{until: mono.Never, `,
		}, stopped, dual},
		{mutant.Mutant{
			Name: "recalls-ignored",
			Why:  "an owner tells the leader that it has given leases back, and goes on to believe in them",
			File: "owner/act.go",
			Old:  publish,
			New: `	if len(protocol.Missing(a.held, v.Leases)) == 0 {
		a = newAreas(v.Leases)
	}
	o.holding.Store(&holding{until: v.Until, `,
		}, stopped, dual},
		{mutant.Mutant{
			Name: "losses-dropped",
			Why:  "callers are told where keys are now, and not that their state is gone",
			File: "lookup/publish.go",
			Old:  "l.losses.append(n)",
			New:  "n.losses = nil\n\t\tl.losses.append(n)",
		}, killed, silent},
		{mutant.Mutant{
			Name: "state-not-installed",
			Why:  "the state of a range that moves arrives, and is thrown away",
			File: "owner/migrate_in.go",
			Old:  "			put(lease)",
			New:  "			_ = put",
		}, []string{"--rolling-restart", "--rounds", "1"}, silent},
	} {
		t.Run(test.bug.Name, func(t *testing.T) {
			t.Parallel()
			r := runWith(t, test.bug, test.args...)
			if test.seen(&r) == 0 {
				t.Errorf("the demo did not see that %s: %+v", test.bug.Why, r)
			}
		})
	}
}

// runWith runs a demo of a command with a bug in it, which must end with the
// status for a violation.
func runWith(t *testing.T, bug mutant.Mutant, args ...string) demo.Report {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "mutant")
	if err := mutant.Build(t.Context(), bug, program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{
		"demo", "--json", "--lease", "6s", "--seed", "7", "--owners", "3", "--users", "300", "--rate", "200",
	}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var ended *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &ended) || ended.ExitCode() != int(statusViolated) {
		t.Errorf("it ended with %v, want exit status %d\n%s", err, statusViolated, errs.String())
	}
	var r demo.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	return r
}
