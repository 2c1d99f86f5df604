package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// leave lets an owner say that it leaves.
func (o *paperOwner) leave() {
	r := o.request()
	r.Leaving, r.Leases = true, nil
	o.leader.step(manager.Request{LeaseRequest: r})
}

// goodbyes returns to which of the owner's messages the leader has said
// goodbye.
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
		o.leader.t.Errorf("%s the leader says goodbye to %v, want %d times", when, got, want)
	}
}

// Who has left is free to go when the store knows: else a successor would wait
// for leases that nobody holds.
func TestGoodbyeAfterTheCommit(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	l.holdUp = true
	a.leave()
	a.wantGoodbyes(0, "before the commit")
	a.leave() // it has waited for long
	a.wantGoodbyes(0, "before the commit")
	l.commit()
	a.wantGoodbyes(2, "after the commit")
	if e := l.log[len(l.log)-1]; e.Cause != leasehold.CauseLeft {
		t.Errorf("the store knows that the lease was %v", e.Cause)
	}
	a.leave() // the goodbye was lost
	a.wantGoodbyes(1, "to who has nothing")
}

// A batch that was under way before says nothing about who left after it.
func TestGoodbyeWaitsForItsOwnBatch(t *testing.T) {
	l := newPaperLeader(t)
	a, b := l.join("a"), l.join("b")
	l.holdUp = true
	l.introduce("c") // something moves
	l.settle()
	if l.pending == nil {
		t.Fatal("nothing is under way")
	}
	b.leave()
	l.commit()
	b.wantGoodbyes(0, "after a batch from before it left,")
	for range 10 {
		if l.pending == nil {
			break
		}
		l.commit()
	}
	b.wantGoodbyes(1, "after all batches")
	a.wantGoodbyes(0, "to who stays")
}

// An outcome that is not known is no commit.
func TestGoodbyeWaitsOutADoubt(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	l.holdUp = true
	a.leave()
	end := l.pending.Last()
	l.step(manager.Committed{Outcome: storage.Unknown})
	a.wantGoodbyes(0, "in doubt")
	l.step(manager.LogEnd{Term: 1, LSN: end})
	a.wantGoodbyes(1, "when the log has it")
}

// A leader whose time is over owes its goodbyes until it leads again.
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
	p.say(o)
	p.now = now.Add(3 * time.Second)
	p.step(manager.Committed{Outcome: storage.Done})
	if o.unread != nil {
		t.Errorf("without authority it says %+v", o.unread)
	}
	p.step(manager.Authority{Until: p.now.Add(time.Second)})
	if o.unread == nil || !o.unread.Goodbye {
		t.Errorf("with authority again it says %+v", o.unread)
	}
}

// What is owed is bounded, whoever asks how often.
func TestGoodbyesAreBounded(t *testing.T) {
	l := newPaperLeader(t, func(c *manager.Config) { c.MaxOwners = 3 })
	a := l.join("a")
	l.holdUp = true
	for range 10 {
		a.leave()
	}
	l.commit()
	a.wantGoodbyes(3, "after ten questions")
}
