package demo

import (
	"fmt"
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

type users []user

func newUsers(n int) users {
	us := make(users, n)
	for i := range us {
		us[i].number, us[i].key = i, leasehold.KeyOf(userName(i))
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

// within returns the users whose keys are in a range.
func (us users) within(r leasehold.Range) (some []*user) {
	for i := range us {
		if r.Contains(us[i].key) {
			some = append(some, &us[i])
		}
	}
	return some
}

// each returns the first users, n at most. Their keys are spread over the key space.
func (us users) each(n int) []*user { return us[:min(n, len(us))].within(leasehold.All) }

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
