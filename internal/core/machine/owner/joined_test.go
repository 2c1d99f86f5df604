package owner_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
)

func joins(actions []owner.Action) (n int) {
	for _, a := range actions {
		if _, ok := a.(owner.Joined); ok {
			n++
		}
	}
	return n
}

// A leader counts an owner among the members when it has processed a request that acknowledges one of its
// replies. Only the reply to that request proves it.
func TestJoinedFollowsTheReplyToAnAck(t *testing.T) {
	s := newServer(t)
	for _, step := range []struct {
		what  string
		term  leasehold.Term
		taken bool // another session has the name
		want  int
	}{
		{"the first reply of a leader", 1, false, 0},
		{"the first reply of the next leader", 2, false, 0},
		{"the reply to a request that acknowledges it", 2, false, 1},
		{"a later reply", 2, false, 0},
		{"the first reply of a third leader", 3, false, 0},
		{"the reply to a request that acknowledges that", 3, false, 0},
		{"another session has the name", 3, true, 0},
		{"the name is free again", 3, false, 1},
	} {
		if step.taken {
			s.nextRequest()
		}
		r := s.reply()
		r.Term = step.term
		if step.taken {
			r.Incumbent = other
		}
		if got := joins(s.receive(s.wake-1, r)); got != step.want {
			t.Errorf("%s: %d times Joined, want %d", step.what, got, step.want)
		}
		if step.taken {
			s.nextRequest()
		}
	}
}

// An unsolicited reply, to a request that acknowledged nothing, proves nothing.
func TestJoinedIgnoresUnsolicitedReplies(t *testing.T) {
	s := newPromisingServer(t)
	s.receive(1, s.reply()) // the leases end, and promises hold back the next request
	if got := joins(s.receive(1, s.reply())); got != 0 {
		t.Errorf("%d times Joined before a request that acknowledges a reply", got)
	}
}
