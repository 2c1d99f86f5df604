package demo

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"sync/atomic"

	"github.com/leasehold-dev/leasehold"
)

// A user sets and reads a status, one request at a time, and sets it again when notified of
// its loss. There may be a million: so it has no pointers, which the garbage collector would
// have to follow.
type user struct {
	number int // among all; part of the name
	key    leasehold.Key

	lost atomic.Bool // a loss covers the key, and the status has not been set again

	// For the request under way only:
	last  uint64 // the number of the last status
	acked uint64 // the highest number that a server has acknowledged
}

func (u *user) name() string { return userName(u.number) }

func userName(number int) string { return "user-" + strconv.Itoa(number) }

// users are sorted by key, so that those of a range are adjacent.
type users []user

func newUsers(n int) users {
	keys, order := make([]leasehold.Key, n), make([]int, n)
	for i := range n {
		keys[i], order[i] = leasehold.KeyOf(userName(i)), i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	us := make(users, n)
	for i, number := range order {
		us[i].number, us[i].key = number, keys[number]
	}
	return us
}

func (us users) keys() []leasehold.Key {
	keys := make([]leasehold.Key, len(us))
	for i := range us {
		keys[i] = us[i].key
	}
	return keys
}

func (us users) each() []*user {
	all := make([]*user, len(us))
	for i := range us {
		all[i] = &us[i]
	}
	return all
}

// spread returns n users at most, spread over all keys.
func (us users) spread(n int) []*user {
	n = min(n, len(us))
	chosen := make([]*user, n)
	for i := range chosen {
		chosen[i] = &us[i*len(us)/n]
	}
	return chosen
}

// within returns the users whose keys are in a range.
func (us users) within(r leasehold.Range) users {
	from := func(key leasehold.Key) int { return sort.Search(len(us), func(i int) bool { return us[i].key >= key }) }
	first, after := from(r.Start), len(us)
	if r.Limit != 0 {
		after = from(r.Limit)
	}
	return us[first:max(first, after)]
}

// text is the status of a user with a number. It is unique if it is long enough.
func (u *user) text(number uint64, size int) string {
	word := fmt.Appendf(nil, "%s is here for the %d. time; ", u.name(), number)
	text := make([]byte, 0, size+len(word))
	for len(text) < size {
		text = append(text, word...)
	}
	return string(text[:size])
}

// next returns the number of the status to set, or 0 to read it. After a loss nothing is
// acknowledged any more.
func (u *user) next(set bool) (number uint64, republish bool) {
	republish = u.lost.Swap(false)
	if republish {
		u.acked = 0
	}
	if !set && !republish {
		return 0, false
	}
	u.last++
	return u.last, republish
}

// A judgement is the result of comparing an answer with the acknowledged write.
type judgement int

const (
	current   judgement = iota // it is not older
	stale                      // it is older
	forgotten                  // it has no status
)

// judge compares an answer with the acknowledged write. After the notice of a loss, or after
// the status was reset, no value is expected.
func (u *user) judge(set, answered uint64) judgement {
	expected := max(u.acked, set)
	if set != 0 {
		u.acked = set
	}
	switch {
	case answered >= expected || u.lost.Load():
		return current
	case answered == 0:
		u.acked = 0
		return forgotten
	}
	return stale
}
