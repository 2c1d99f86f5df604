package demo

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/leasehold-dev/leasehold"
)

// A user sets a status and asks for it, one request at a time, and sets it again
// when told that it was lost.
type user struct {
	name string
	key  leasehold.Key

	busy atomic.Bool // has a request under way
	lost atomic.Bool // a loss covers the key, and the status has not been set again

	// Only the request under way touches these.
	number uint64 // of the last status
	acked  uint64 // a server has said that it has a status with this number, or a later one
}

// users are sorted by key, so that those of a range are next to each other.
type users []*user

func newUsers(n int) users {
	us := make(users, n)
	for i := range us {
		name := fmt.Sprintf("user-%d", i)
		us[i] = &user{name: name, key: leasehold.KeyOf(name)}
	}
	slices.SortFunc(us, func(a, b *user) int { return cmp.Compare(a.key, b.key) })
	return us
}

// within returns the users whose keys are in a range.
func (us users) within(r leasehold.Range) users {
	first, _ := slices.BinarySearchFunc(us, r.Start, func(u *user, k leasehold.Key) int { return cmp.Compare(u.key, k) })
	after := len(us)
	if r.Limit != 0 {
		after, _ = slices.BinarySearchFunc(us, r.Limit, func(u *user, k leasehold.Key) int { return cmp.Compare(u.key, k) })
	}
	return us[first:max(first, after)]
}

// next decides what the user does next: set the status, or ask for it. After a
// loss nothing is acknowledged any more.
func (u *user) next(set bool) (number uint64, republish bool) {
	republish = u.lost.Swap(false)
	if republish {
		u.acked = 0
	}
	if !set && !republish {
		return 0, false
	}
	u.number++
	return u.number, republish
}

// judge compares an answer with what was acknowledged, and reports whether it
// is older. A user who has been told of a loss meanwhile expects nothing.
func (u *user) judge(set uint64, answered uint64) (stale bool) {
	stale = answered != 0 && answered < max(u.acked, set) && !u.lost.Load()
	if set != 0 {
		u.acked = set
	}
	return stale
}
