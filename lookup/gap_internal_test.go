package lookup

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/driver"
)

// A store has lost the history that a lookup has followed, and the table continues after a gap. The ranges that are not
// proven held were lost with it. Readers receive these losses, although the table has no loss of these ranges, and all
// later losses.
func TestLossesAcrossGap(t *testing.T) {
	holder := &table.Holder{Owner: "a", Addr: "a:1", Session: leasehold.Session{1}, Weight: 1}
	granted := table.New()
	if err := granted.Apply(&table.Change{LSN: 1, Kind: table.Granted, Range: leasehold.All, Generation: 1, Holder: holder}); err != nil {
		t.Fatal(err)
	}
	nothing := func(leasehold.Range, table.Entry) bool { return false }
	followed := granted.Rebased(1000, false, nothing) // this history is lost
	restored := granted.Rebased(2000, false, nothing)
	later := restored.Clone()
	vacated := table.Change{LSN: 2001, Kind: table.Vacated, Range: leasehold.All, Generation: 1, Holder: holder, Cause: leasehold.CauseExpired}
	if err := later.Apply(&vacated); err != nil {
		t.Fatal(err)
	}

	m, err := machine.New(0, machine.Config{
		Namespace: "n", Limits: protocol.DefaultLimits, Managers: []storage.ManagerID{"m"}, Poll: time.Second, Stale: time.Minute,
		Retry: time.Second, Rand: rand.New(rand.NewPCG(1, 0)),
	})
	if err != nil {
		t.Fatal(err)
	}
	l := &Lookup{cfg: Config{Logger: slog.New(slog.DiscardHandler)}, outbox: newOutbox(10), losses: newLossLog(10)}
	l.complete.Store(&complete{})
	f := &follower{lookup: l, machine: m, errors: newFailures(func() []string { return nil })}
	f.woken = driver.DetectSuspend[machine.Event, machine.Action](m, clock.NewDetector(clock.New()), machine.Slept{})
	step := func(r *protocol.LookupReply) {
		r.Namespace, r.Leader, r.Term, r.Leads = "n", "m", 1, true
		actions, _ := m.Step(mono.Instant(0), machine.Reply{LookupReply: r})
		f.act(0, slices.DeleteFunc(actions, func(a machine.Action) bool { _, sends := a.(machine.Send); return sends }))
		u := l.outbox.take()
		u.table = m.Table()
		l.losses.append(u)
	}
	step(&protocol.LookupReply{LSN: 1000, Snapshot: followed})
	at, resumed := l.losses.since(1000), l.losses.since(1000)
	step(&protocol.LookupReply{LSN: 2000, Snapshot: restored})
	gap, _ := l.losses.read(&at)
	if len(gap) != 1 || gap[0].LSN != 2000 || gap[0].Resume != 2000 {
		t.Errorf("across the gap the reader receives %+v, want one loss at LSN 2000", gap)
	}
	step(&protocol.LookupReply{From: 2000, LSN: 2001, Changes: []table.Change{vacated}})
	if after, _ := l.losses.read(&at); len(after) != 1 || after[0].LSN != 2001 {
		t.Errorf("after the gap the reader receives %+v, want one loss at LSN 2001", after)
	}
	if all, _ := l.losses.read(&resumed); len(all) != 2 {
		t.Errorf("a slow reader receives %+v, want both losses", all)
	}
	if from := lostSince(later, 1000); len(from) != 1 || from[0].LSN != 2001 || from[0].Resume != 2001 {
		t.Errorf("a reader that resumes receives %+v, want a loss at LSN 2001", from)
	}
	if from := lostSince(restored, 1000); len(from) != 1 || from[0].LSN != 2000 || from[0].Resume != 2000 {
		t.Errorf("a reader that resumes receives %+v, want a loss at LSN 2000", from)
	}
}
