package manager

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
)

// An answer takes the place of an earlier one, and of the news that it has.
func TestMail(t *testing.T) {
	m := newMail()
	answer := func(lsn int, term leasehold.Term) outgoing {
		r := &protocol.LookupReply{Namespace: "pool", Term: term, LSN: leasehold.LSN(lsn)}
		return outgoing{update: &encoded{reply: r}, answer: r}
	}
	m.reply(answer(1, 1))
	m.add(outgoing{update: &encoded{reply: change(1, 2)}})
	m.add(outgoing{update: &encoded{reply: change(2, 3)}})
	m.reply(answer(2, 1))
	all := taken(&lookupStream{mail: m})
	if len(all) != 2 || all[0].answer == nil || all[0].answer.LSN != 2 || all[1].update.reply.LSN != 3 {
		t.Errorf("what is sent: %+v", all)
	}
	m.add(outgoing{update: &encoded{reply: change(3, 4)}})
	m.reply(answer(9, 2)) // of another term: it may be about another history
	if all := taken(&lookupStream{mail: m}); len(all) != 2 {
		t.Errorf("what is sent: %+v", all)
	}
}

// Whoever attends gets the answer, and nobody is woken for it. What it does not send others do.
func TestAttend(t *testing.T) {
	woken := func(m *mail) bool { return len(m.ready) > 0 }
	r := &protocol.LookupReply{Namespace: "pool", Term: 1, LSN: 1}
	answer := outgoing{update: &encoded{reply: r}, answer: r}
	m := newMail()
	if m.takeAnswer() != nil || !m.attend() || m.attend() || m.claim(nil) {
		t.Error("want one to attend, and nobody else to send")
	}
	m.reply(answer)
	if woken(m) {
		t.Error("somebody is woken for what is attended to")
	}
	if out := m.takeAnswer(); out == nil || out.answer != r || m.takeAnswer() != nil {
		t.Errorf("the answer is %+v", out)
	}
	m.add(outgoing{update: &encoded{reply: change(1, 2)}})
	if m.release(nil, false); !woken(m) {
		t.Error("nobody is told of what has come meanwhile")
	}
	if m.attend() {
		t.Error("an answer is sent before the news that waits")
	}
	if all := taken(&lookupStream{mail: m}); len(all) != 1 || !m.attend() {
		t.Errorf("%d wait", len(all))
	}
	select {
	case <-m.ready:
	default:
	}

	m.reply(answer)
	m.returnAnswer(m.takeAnswer())
	if m.release(nil, false); !woken(m) {
		t.Error("nobody is told of what was not sent")
	}
	if all := taken(&lookupStream{mail: m}); len(all) != 1 || all[0].answer != r {
		t.Errorf("what waits: %+v", all)
	}
	newer := &protocol.LookupReply{Namespace: "pool", Term: 1, LSN: 2}
	m.reply(outgoing{update: &encoded{reply: newer}, answer: newer})
	if m.returnAnswer(&answer); m.takeAnswer().answer != newer {
		t.Error("an older answer takes the place of a newer one")
	}
}

// Of whoever sends what waits, and whoever sends what need not, one does at a time.
func TestClaim(t *testing.T) {
	news := outgoing{update: &encoded{reply: change(1, 2)}}
	woken := func(m *mail) bool {
		select {
		case <-m.ready:
			return true
		default:
			return false
		}
	}
	m := newMail()
	if !m.claim(nil) || m.claim(nil) {
		t.Error("want one to have it, and no other")
	}
	m.add(news)
	if _, some := m.take(); some || woken(m) {
		t.Error("news is sent while somebody else sends, or somebody is woken for it")
	}
	if m.release(nil, false); !woken(m) {
		t.Error("who sends what waits is not told that it can")
	}
	if m.claim(nil) {
		t.Error("what is new is sent before what waits")
	}
	if _, some := m.take(); !some || m.claim(nil) {
		t.Error("want what waits to be sent, and nothing else meanwhile")
	}
	if _, some := m.take(); some || !m.claim(nil) {
		t.Error("when everything has been sent there is more, or nobody else may send")
	}
	if m.release(nil, false); woken(m) {
		t.Error("there is nothing to be told of")
	}
	if m.close(); m.claim(nil) {
		t.Error("something is sent to whoever has left")
	}
}

// Whatever cannot be sent is sent later, in order, and to who is slow by nobody else for some time.
func TestClaimKeepsOrder(t *testing.T) {
	m := newMail()
	news := func(from, to int) []outgoing { return []outgoing{{update: &encoded{reply: change(from, to)}}} }
	if !m.claim(news(0, 1)) || m.claim(news(1, 2)) {
		t.Fatal("want one to have it, and no other")
	}
	m.release(news(0, 1), true)
	all := taken(&lookupStream{mail: m})
	if len(all) != 2 || all[0].update.reply.LSN != 1 || all[1].update.reply.LSN != 2 {
		t.Errorf("what is sent: %+v", all)
	}
	for i := range slowFor {
		if m.claim(news(i, i+1)) || len(taken(&lookupStream{mail: m})) != 1 {
			t.Fatalf("wave %d does not wait for who is slow", i)
		}
	}
	if !m.claim(nil) {
		t.Error("who was slow is so for ever")
	}
}
