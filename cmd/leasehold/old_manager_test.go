package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/server/cli"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A manager of a version before transfers does not support requests about moves. Commands report an error or
// "unknown", not that there are no moves.
func TestOldManager(t *testing.T) {
	for _, test := range []struct {
		args      string
		status    cli.Status
		want, not string
	}{
		{"range moves", cli.StatusTrouble, "this manager, or the leader, is older than this command and does not support the request\nUpgrade the managers.", "7400"},
		{"owner drain server-1", cli.StatusTrouble, "Upgrade the managers", "cannot transfer state"},
		{"namespace show presence", cli.StatusOK, "max owners", "given up after"},
		{"namespace show presence --json", cli.StatusOK, "maxOwners", "moveTimeoutSeconds"},
		{"owner list", cli.StatusOK, "unknown", "cannot"},
		{"owner show server-1", cli.StatusOK, "supervised  unknown", "supervised  no"},
		{"owner list --json", cli.StatusOK, "server-1", "movesState"},
	} {
		t.Run(test.args, func(t *testing.T) {
			f := startFake(t, &fakeManager{old: true, namespaces: []*leaseholdv1.NamespaceConfig{{Name: "presence", Policy: "consistent", MaxOwners: 7, Moves: 4, MoveTimeout: 1e9}}})
			var out, errs bytes.Buffer
			got := run(t.Context(), append(strings.Fields(test.args), "--managers", f.addr), &out, &errs)
			output := out.String() + errs.String()
			if got != int(test.status) || !strings.Contains(output, test.want) || strings.Contains(output, test.not) {
				t.Errorf("exit status %d, want %d, and %q without %q:\n%s", got, test.status, test.want, test.not, output)
			}
		})
	}
}

// The status of a namespace that is not balanced by load has the reason.
func TestStatusHasReasonForNoBalancing(t *testing.T) {
	const why = "the loads of 12 % of the keys are known, and rebalancing starts at 90 %"
	f := startFake(t, inPresence(&fakeManager{lull: why}))
	for args, want := range map[string]string{
		"status":                  "\npresence is not balanced by load now: " + why + ".\n",
		"status --json":           `"lull": "` + why + `"`,
		"namespace show presence": why,
	} {
		var out, errs bytes.Buffer
		got := run(t.Context(), append(strings.Fields(args), "--managers", f.addr), &out, &errs)
		if got != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit status %d\n%s%s", args, got, out.String(), errs.String())
		}
	}
}
