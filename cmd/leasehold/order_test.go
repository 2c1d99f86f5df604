package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// inPresence is a fake manager that has one namespace.
func inPresence(f *fakeManager) *fakeManager {
	f.namespaces = []*leaseholdv1.NamespaceConfig{{Name: "presence"}}
	return f
}

func TestDrainThatDoesNotEndWell(t *testing.T) {
	for _, test := range []struct {
		name   string
		fake   *fakeManager
		status status
		out    string
		errs   string
	}{
		{
			"its process ends", &fakeManager{orders: fakeOrders{gone: true}}, statusOK,
			"server-1 has left after", "",
		},
		{
			"nobody can take over", &fakeManager{alone: true}, statusTrouble,
			"", "nobody else can take the keys of server-1: start another owner first",
		},
		{
			"it is lost with the leader", &fakeManager{orders: fakeOrders{forget: true}}, statusTrouble,
			"", "server-1 is no longer drained: somebody has cancelled it, or a manager died before the owner heard of it",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := startFake(t, inPresence(test.fake))
			var out, errs bytes.Buffer
			got := run(t.Context(), []string{"drain", "server-1", "--managers", f.addr}, &out, &errs)
			if got != int(test.status) || !strings.Contains(out.String(), test.out) || !strings.Contains(errs.String(), test.errs) {
				t.Errorf("exit status %d, want %d\n%s%s", got, test.status, out.String(), errs.String())
			}
		})
	}
}

// Whoever does not want to wait any longer learns that the drain goes on.
func TestInterruptedDrainGoesOn(t *testing.T) {
	f := startFake(t, inPresence(&fakeManager{orders: fakeOrders{stuck: true}}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	errs := &lineCounter{left: 1, cancel: cancel}
	got := run(ctx, []string{"drain", "server-1", "--managers", f.addr}, &out, errs)
	const want = "server-1 has 64 leases, 50.00 % of the keys; 2 moves, 5 MiB sent\n" +
		"server-1 still has 64 leases, 50.00 % of the keys. The drain goes on; see 'leasehold moves', or end it with 'leasehold drain server-1 --cancel'.\n"
	if got != int(statusInterrupted) || errs.said.String() != want || out.String() != "" {
		t.Errorf("exit status %d\n%s%s", got, out.String(), errs.said.String())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, drained := f.orders.drained["server-1"]; !drained {
		t.Error("the drain was cancelled")
	}
}

// A move that is no longer on its way, and not done after a while, has failed.
func TestMoveThatComesToNothing(t *testing.T) {
	f := startFake(t, inPresence(&fakeManager{alone: true}))
	c := &client{managers: []string{f.addr}, timeout: defaultTimeout, namespace: "presence"}
	w := &moveWaiter{
		c: c, request: &leaseholdv1.MoveRangeRequest{Version: 2, Namespace: "presence", Owner: "server-3", Limit: 1 << 63},
		document: &moveDocument{Owner: "server-3", keys: leasehold.Range{Limit: 1 << 63}},
	}
	look := func() error {
		return c.ask(t.Context(), func(ctx context.Context, to admin) error { _, err := w.look(ctx, to); return err })
	}
	if err := look(); err != nil {
		t.Errorf("before it has begun: %v", err)
	}
	w.seen = time.Now()
	if err := look(); err != nil {
		t.Errorf("just after it was last seen: %v", err)
	}
	w.seen = time.Now().Add(-time.Minute)
	if err := look(); err == nil || !strings.Contains(err.Error(), "50.00 % of the keys were not moved: the move failed") {
		t.Errorf("a minute after it was last seen: %v", err)
	}
}

// A leader that is replaced takes seconds: that is waited for.
func TestAwaitOutlivesALeader(t *testing.T) {
	f := startFake(t, inPresence(&fakeManager{}))
	var errs bytes.Buffer
	c := newClient(&cobra.Command{})
	c.managers, c.errs = []string{f.addr}, newScreen(&errs)
	looks := 0
	last, err := c.await(t.Context(), 0, func(context.Context, admin) (sight, error) {
		if looks++; looks == 1 {
			return sight{}, leasehold.Errorf("ask", leasehold.NotLeader, "", "nobody leads")
		}
		return sight{done: true, text: "all"}, nil
	})
	if err != nil || last.text != "all" || looks != 2 {
		t.Errorf("after %d looks: %v, %v", looks, last, err)
	}
	if !strings.HasPrefix(errs.String(), "no manager answers, trying again") {
		t.Errorf("it says %q", errs.String())
	}
}

func TestWaitingOnATerminalIsABar(t *testing.T) {
	var out bytes.Buffer
	w := newWaiting(screen{Writer: &out, terminal: true, width: 60}, true)
	w.report(sight{share: 0.5, text: "half of it"}, nil)
	w.report(sight{share: 0.5, text: strings.Repeat("long ", 20)}, nil)
	w.stop()
	lines := strings.Split(out.String(), eraseLine)
	if len(lines) != 4 || lines[3] != "" {
		t.Fatalf("it writes %q", lines)
	}
	if got, want := plain(lines[1]), "██████████░░░░░░░░░░  half of it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := plain(lines[2]); len(got) > 59 || !strings.HasPrefix(got, "long long") {
		t.Errorf("without room for a bar: %q", got)
	}
}

func TestByteText(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 B", 999: "999 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1000 << 10: "0.977 MiB", 5 << 20: "5 MiB", 123 << 30: "123 GiB", 1<<64 - 1: "16 EiB",
	} {
		if got := byteText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
