package manager

import (
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/protocol"
)

func TestOutbox(t *testing.T) {
	b := newOutbox()
	woken := func() bool { return len(b.ready) > 0 }
	reply := func(seq protocol.Seq) holdMessage { return leaseReply{&protocol.LeaseReply{Seq: seq}} }
	var sent []protocol.Seq
	send := func(m holdMessage) error {
		seq := m.(leaseReply).Seq //nolint:forcetypeassert // they all are
		if sent = append(sent, seq); seq == 2 {
			b.put(reply(3)) // while this one is sent
			if b.attend() {
				t.Error("two send at a time")
			}
		}
		return nil
	}
	if !b.attend() || b.attend() {
		t.Error("want one to attend")
	}
	b.put(reply(1))
	b.put(reply(2))
	b.announce(notLeader{}) // there is something to say
	if woken() {
		t.Error("somebody is woken for what is attended to")
	}
	if err := b.sendAll(send); err != nil || len(sent) != 2 || sent[0] != 2 || sent[1] != 3 || woken() {
		t.Errorf("sent %v: %v", sent, err)
	}
	if !b.attend() {
		t.Error("nobody attends, and nobody can")
	}
	b.put(reply(4))
	if b.leave(); !woken() {
		t.Error("nobody is woken for what nobody attends to any more")
	}
	select {
	case <-b.ready:
	default:
	}
	if broken := errors.New("broken"); !b.attend() || b.sendAll(func(holdMessage) error { return broken }) != broken || b.attend() { //nolint:errorlint // it is the very same
		t.Error("somebody sends on a stream that is broken")
	}
}
