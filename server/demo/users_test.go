package demo

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"pgregory.net/rapid"
)

func TestUsersWithinARange(t *testing.T) {
	us := newUsers(100)
	rapid.Check(t, func(t *rapid.T) {
		edge := rapid.OneOf(rapid.Uint64(), rapid.Map(rapid.IntRange(0, 99), func(i int) uint64 { return uint64(us[i].key) }))
		r := leasehold.Range{Start: leasehold.Key(edge.Draw(t, "start")), Limit: leasehold.Key(edge.Draw(t, "limit"))}
		if !r.Valid() { // swap the edges; equal edges are the whole space
			r.Start, r.Limit = r.Limit, r.Start
		}
		if !r.Valid() {
			r = leasehold.All
		}
		found := make(map[*user]bool)
		for _, u := range us.within(r) {
			found[u] = true
		}
		for _, u := range us.each(100) {
			if found[u] != r.Contains(u.key) {
				t.Fatalf("%v, key %v: found %t", r, u.key, found[u])
			}
		}
	})
}

// TestUserJudgesResponses walks through reads, writes and losses of one user.
func TestUserJudgesResponses(t *testing.T) {
	u := &user{}
	ask := func(set bool, answer func(number uint64) uint64, want judgement, republished bool) {
		t.Helper()
		number, again := u.next(set)
		if got := u.judge(number, answer(number)); got != want || again != republished {
			t.Errorf("judgement %d, republished %t, want %d, %t", got, again, want, republished)
		}
	}
	is := func(n uint64) func(uint64) uint64 { return func(uint64) uint64 { return n } }
	stored := func(number uint64) uint64 { return number }

	ask(false, is(0), current, false) // no status was set
	ask(true, stored, current, false)
	ask(true, stored, current, false)
	ask(false, is(2), current, false)
	ask(false, is(1), stale, false)     // the first write, although the second was acknowledged
	ask(false, is(0), forgotten, false) // the notice may arrive later
	ask(false, is(0), current, false)   // the loss was reported already
	u.lost.Store(true)
	ask(false, stored, current, true) // republishes the status with a new number
	ask(false, is(3), current, false)
	ask(false, is(2), stale, false)
	u.lost.Store(true)
	number, _ := u.next(false)
	u.lost.Store(true) // another loss during the request
	if u.judge(number, 1) != current || u.judge(0, 0) != current {
		t.Error("a loss with a notice was judged as forgotten or stale")
	}
}
