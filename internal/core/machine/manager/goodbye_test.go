package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// leave sends the request of an owner that leaves.
func (o *paperOwner) leave() {
	r := o.request()
	r.Leaving, r.Leases = true, nil
	o.leader.step(manager.Request{LeaseRequest: r})
}

// goodbyes returns the owner's requests that got a goodbye.
func (o *paperOwner) goodbyes() (echoes []int) {
	for _, r := range o.unread {
		if r.Goodbye {
			echoes = append(echoes, int(r.Echo))
		}
	}
	o.unread = nil
	return echoes
}

func (o *paperOwner) wantGoodbyes(want int, when string) {
	o.leader.t.Helper()
	if got := o.goodbyes(); len(got) != want {
		o.leader.t.Errorf("%s: goodbyes to %v, want %d of them", when, got, want)
	}
}

// The goodbye follows the commit: otherwise a successor would wait for leases that no owner holds.
func TestGoodbyeAfterTheCommit(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	l.holdUp = true
	a.leave()
	a.wantGoodbyes(0, "before the commit")
	a.leave() // retry after a timeout
	a.wantGoodbyes(0, "before the commit")
	l.commit()
	a.wantGoodbyes(2, "after the commit")
	if e := l.log[len(l.log)-1]; e.Cause != leasehold.CauseLeft {
		t.Errorf("the last recorded change is %v", e.Cause)
	}
	a.leave() // the goodbye was lost
	a.wantGoodbyes(1, "owner without leases")
}

// An earlier batch does not record the end of the session.
func TestGoodbyeWaitsForItsOwnBatch(t *testing.T) {
	l := newPaperLeader(t)
	a, b := l.join("a"), l.join("b")
	l.holdUp = true
	l.introduce("c") // causes a move
	l.settle()
	if l.pending == nil {
		t.Fatal("no batch is pending")
	}
	b.leave()
	l.commit()
	b.wantGoodbyes(0, "after a batch from before it left")
	for range 10 {
		if l.pending == nil {
			break
		}
		l.commit()
	}
	b.wantGoodbyes(1, "after all batches")
	a.wantGoodbyes(0, "owner that stays")
}

// An unknown outcome is not a commit.
func TestGoodbyeWaitsForUnknownCommit(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	l.holdUp = true
	a.leave()
	end := l.pending.Last()
	l.step(manager.Committed{Outcome: storage.Unknown})
	a.wantGoodbyes(0, "while the outcome is unknown")
	l.step(manager.LogEnd{Term: 1, LSN: end})
	a.wantGoodbyes(1, "when the log has it")
}

// Without authority a goodbye is deferred until the leader has authority again.
func TestGoodbyeNeedsAuthority(t *testing.T) {
	cfg := poolConfig()
	now := mono.Instant(time.Hour)
	m, err := manager.New(now, cfg, 1, now.Add(3*time.Second), &storage.State{})
	if err != nil {
		t.Fatal(err)
	}
	p := &pool{t: t, machine: m, now: now, players: make(map[leasehold.Session]*player)}
	p.did(m.Advance(now))
	o := p.join(poolHolder(1))
	p.settle()
	o.leaving, o.leases = true, nil
	p.send(o)
	p.now = now.Add(3 * time.Second)
	p.step(manager.Committed{Outcome: storage.Done})
	if o.unread != nil {
		t.Errorf("messages without authority: %+v", o.unread)
	}
	p.step(manager.Authority{Until: p.now.Add(time.Second)})
	if o.unread == nil || !o.unread.Goodbye {
		t.Errorf("messages with authority again: %+v", o.unread)
	}
}

// The number of pending goodbyes is bounded.
func TestGoodbyesAreBounded(t *testing.T) {
	l := newPaperLeader(t, func(c *manager.Config) { c.MaxOwners = 3 })
	a := l.join("a")
	l.holdUp = true
	for range 10 {
		a.leave()
	}
	l.commit()
	a.wantGoodbyes(3, "after ten requests")
}
