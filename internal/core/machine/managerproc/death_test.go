package managerproc_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

var token = table.DeathToken{7}

// died is a notice about ann.
func died(ns leasehold.Namespace) managerproc.Died {
	return managerproc.Died{ID: 3, DeathNotice: &protocol.DeathNotice{Namespace: ns, Owner: "ann", Session: holder("ann").Session, Token: token}}
}

func TestStandbyRedirectsDeathNotices(t *testing.T) {
	p := standby(t)
	p.step(0, died("x"), `redirect notice 3 to "" in 0`)
	p.elects(10*ms, byrecord.Seen{Record: storage.Record{Version: 4, Term: 3, Leader: "other", Session: leasehold.Session{2}}})
	p.step(20*ms, died("x"), `redirect notice 3 to "other" in 3`)
}

// A leader decides on notices as soon as it has the table.
func TestLeaderDecidesOnDeathNotices(t *testing.T) {
	ann := holder("ann")
	ann.DeathHash = token.Hash()
	p := elected(t)
	p.step(0, died("x"), `redirect notice 3 to "" in 1`) // it has not read the catalog
	p.reads(0, catalog(1, entry("x"), entry("y")), "load x in 1", "load y in 1")
	p.step(0, died("nowhere"), "reply to notice 3: 2")
	p.step(0, died("x"), "reply to notice 3: 0") // it has not loaded the table
	p.loads(10*ms, "x", 1, &storage.State{Term: 1, Changes: []table.Change{
		{LSN: 1, Kind: table.Granted, Range: leasehold.All, Generation: 1, Holder: ann},
	}}, "serve x in 1")
	p.step(20*ms, died("x"), "x in 1: commit 1 to 2")
	p.manages(30*ms, "x", 1, manager.Committed{Outcome: storage.Done}, "x in 1: broadcast 2", "reply to notice 3: 1")
	p.step(40*ms, died("x"), "reply to notice 3: 1")
}

// A namespace that cannot be led does not decide either.
func TestParkedNamespaceAndDeathNotices(t *testing.T) {
	bad := entry("x")
	bad.Policy = "unknown"
	p := leader(t)
	p.machine.Step(10*ms, managerproc.Catalogued{Term: 1, Catalog: catalog(2, bad, entry("y"))})
	p.step(20*ms, died("x"), "reply to notice 3: 0")
}
