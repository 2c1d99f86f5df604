package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/server/cli"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// inPresence adds the namespace presence to a fake manager.
func inPresence(f *fakeManager) *fakeManager {
	f.namespaces = []*leaseholdv1.NamespaceConfig{{Name: "presence"}}
	return f
}

func TestDrainResults(t *testing.T) {
	for _, test := range []struct {
		name   string
		fake   *fakeManager
		status cli.Status
		out    string
		errs   string
	}{
		{
			"owner leaves", &fakeManager{orders: fakeOrders{gone: true}}, cli.StatusOK,
			"server-1 has left after", "",
		},
		{
			"owner crashes", &fakeManager{orders: fakeOrders{gone: true, crashed: true}}, cli.StatusTrouble,
			"", "server-1 left with 64 leases: the state of up to 50.00 % of the keys is lost",
		},
		{
			"no other owner", &fakeManager{alone: true}, cli.StatusTrouble,
			"", "no other owner can receive the keys of server-1: start another owner first",
		},
		{
			"drain lost with the leader", &fakeManager{orders: fakeOrders{dropped: true}}, cli.StatusTrouble,
			"", "the drain of server-1 has ended: it was cancelled, or a manager failed before the owner received it",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := startFake(t, inPresence(test.fake))
			var out, errs bytes.Buffer
			got := run(t.Context(), []string{"owner", "drain", "server-1", "--managers", f.addr}, &out, &errs)
			if got != int(test.status) || !strings.Contains(out.String(), test.out) || !strings.Contains(errs.String(), test.errs) {
				t.Errorf("exit status %d, want %d\n%s%s", got, test.status, out.String(), errs.String())
			}
		})
	}
}

// A dry run of a drain fails, too, if no other owner can receive the keys.
func TestDrainDryRunOfLastOwner(t *testing.T) {
	f := startFake(t, inPresence(&fakeManager{alone: true}))
	var out, errs bytes.Buffer
	got := run(t.Context(), []string{"owner", "drain", "server-1", "--dry-run", "--managers", f.addr}, &out, &errs)
	if got != int(cli.StatusTrouble) || out.Len() > 0 || !strings.Contains(errs.String(), "no other owner can receive the keys of server-1") {
		t.Errorf("exit status %d\n%s%s", got, out.String(), errs.String())
	}
}

// An interrupt ends only the command: the drain continues, and the output states that.
func TestInterruptedDrainContinues(t *testing.T) {
	f := startFake(t, inPresence(&fakeManager{orders: fakeOrders{stuck: true}}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	errs := &lineCounter{left: 1, cancel: cancel}
	got := run(ctx, []string{"owner", "drain", "server-1", "--managers", f.addr}, &out, errs)
	const want = "server-1 has 64 leases, 50.00 % of the keys; 2 moves, 5.0 MiB sent\n" +
		"server-1 still has 64 leases, 50.00 % of the keys. The drain continues: see 'leasehold range moves', or end it with 'leasehold owner drain server-1 --cancel'.\n"
	if got != int(cli.StatusInterrupted) || errs.output.String() != want || out.String() != "" {
		t.Errorf("exit status %d\n%s%s", got, out.String(), errs.output.String())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, drained := f.orders.drained["server-1"]; !drained {
		t.Error("the drain was cancelled")
	}
}

// A move that fails before the first poll is reported after the timeout, which begins with the command.
func TestMoveFailsAtOnce(t *testing.T) {
	f := startFake(t, inPresence(&fakeManager{idle: true, orders: fakeOrders{stuck: true}}))
	var out, errs bytes.Buffer
	got := run(t.Context(), []string{"range", "move", "--key", "hello", "server-3", "--managers", f.addr}, &out, &errs)
	if got != int(cli.StatusTrouble) || !strings.Contains(errs.String(), "the move failed, or the policy overruled it") || out.String() != "" {
		t.Errorf("exit status %d\n%s%s", got, out.String(), errs.String())
	}
}

// Planning an order blocks the leader, so a command sends an order once. A second request is allowed only to
// explain a rejection.
func TestOrdersAreSentOnce(t *testing.T) {
	for _, test := range []struct {
		args   string
		method string
		want   int
	}{
		{"owner drain server-1", "DrainOwner", 1},
		{"owner drain server-2", "DrainOwner", 2},
		{"range rebalance", "Rebalance", 1},
		{"range move --key hello server-3", "MoveRange", 1},
	} {
		t.Run(test.args, func(t *testing.T) {
			f := startFake(t, inPresence(&fakeManager{}))
			var out, errs bytes.Buffer
			run(t.Context(), append(strings.Fields(test.args), "--managers", f.addr), &out, &errs)
			got := 0
			for _, method := range f.called() {
				if method == test.method {
					got++
				}
			}
			if got != test.want {
				t.Errorf("%d requests, want %d\n%s%s", got, test.want, out.String(), errs.String())
			}
		})
	}
}
