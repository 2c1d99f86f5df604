package flease_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// starting is a world in which process 1 of three restarts. It participates 12 s later, if nothing
// prevents it.
func starting(t *testing.T) *world {
	w := newWorld(t, 3)
	w.mail = nil
	w.start(1)
	return w
}

// strange delivers the envelope of a stranger to process 1.
func (w *world) strange(e flease.Envelope) (flease.Envelope, bool) {
	e.Incarnation = 4711
	return w.members[1].m.Strange(w.time(1), &e)
}

// wantReadyAfter advances time, and checks that process 1 participates at its end and not before.
func (w *world) wantReadyAfter(d time.Duration) {
	w.t.Helper()
	w.pass(d - 100*time.Millisecond)
	if w.members[1].m.Ready() {
		w.t.Errorf("ready before %v have passed", d)
	}
	w.pass(200 * time.Millisecond)
	if !w.members[1].m.Ready() {
		w.t.Errorf("not ready after %v", d)
	}
}

// Effects of a stranger on a process that has just started.
func TestStrangers(t *testing.T) {
	const silence, later = 12 * time.Second, 5 * time.Second
	for name, test := range map[string]struct {
		receive func(*world)
		want    time.Duration // until it participates, from 5 s after its start
	}{
		"nobody": {func(*world) {}, silence - later},
		"one that participates": {func(w *world) {
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall})
		}, silence},
		"one that participates, and two of us that wait or participate": {func(w *world) {
			w.friend(2, true)
			w.friend(3, false)
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall})
		}, silence},
		"three that wait, one of them received long ago, and three of us": {func(w *world) {
			w.strange(flease.Envelope{From: 8, Sent: w.time(1).Wall, Waiting: true})
			w.pass(11 * time.Second)
			w.strange(flease.Envelope{From: 9, Sent: w.time(1).Wall, Waiting: true})
			w.pass(2 * time.Second)
			w.friend(2, true)
			w.friend(3, true)
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall, Waiting: true})
		}, silence - 2*time.Second},
		"one that waits": {func(w *world) {
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall, Waiting: true})
		}, silence},
		"one that waits, and two of us": {func(w *world) {
			w.friend(2, true)
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall, Waiting: true})
		}, silence - later},
		"two that wait, and two of us": {func(w *world) {
			w.friend(2, true)
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall, Waiting: true})
			w.strange(flease.Envelope{From: 8, Sent: w.time(1).Wall, Waiting: true})
		}, silence},
		"two that wait, and one of us that participates": {func(w *world) {
			w.friend(2, false)
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall, Waiting: true})
			w.strange(flease.Envelope{From: 8, Sent: w.time(1).Wall, Waiting: true})
		}, silence - later},
		"one of us that becomes a stranger": {func(w *world) {
			w.friend(2, true)
			w.strange(flease.Envelope{From: 2, Sent: w.time(1).Wall, Waiting: true})
		}, silence},
		"an old envelope": {func(w *world) {
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall.Add(-time.Minute)})
		}, silence - later},
		"one with a wrong clock, in a reply to us": {func(w *world) {
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall.Add(-time.Hour), To: w.members[1].inc})
		}, silence},
	} {
		t.Run(name, func(t *testing.T) {
			w := starting(t)
			w.t = t
			w.pass(later)
			test.receive(w)
			w.wantReadyAfter(test.want)
		})
	}
}

// friend delivers a greeting of another member of the group to process 1.
func (w *world) friend(id flease.Process, waiting bool) {
	e := &flease.Envelope{From: id, Incarnation: w.members[id].inc, Sent: w.time(id).Wall, Waiting: waiting}
	w.members[1].m.Receive(w.time(1), e, nil)
}

// Only a waiting stranger gets a reply, and a reply gets none: two strangers do not exchange
// messages for ever.
func TestStrangersAreAnswered(t *testing.T) {
	w := starting(t)
	greeting := flease.Envelope{From: 7, Sent: 99, Waiting: true}
	answer, ok := w.strange(greeting)
	want := flease.Envelope{From: 1, Incarnation: w.members[1].inc, Waiting: true, To: 4711, Sent: w.time(1).Wall, Echo: 99}
	if !ok || answer != want {
		t.Errorf("%+v, %t, want %+v", answer, ok, want)
	}
	greeting.To = w.members[1].inc
	if _, ok := w.strange(greeting); ok {
		t.Error("a reply was answered")
	}
	if _, ok := w.strange(flease.Envelope{From: 7}); ok {
		t.Error("a participating stranger was answered")
	}
	w.run(15 * time.Second)
	greeting.To = 0
	if answer, ok := w.strange(greeting); !ok || answer.Waiting {
		t.Errorf("a participating process answers %+v, %t", answer, ok)
	}
}

// Only processes that do not participate yet send greetings.
func TestGreet(t *testing.T) {
	w := starting(t)
	w.members[1].m.Greet()
	w.collect(1)
	if len(w.mail) != 3 || !w.mail[0].e.Waiting || len(w.mail[0].msgs) != 0 || w.mail[2].to != 1 {
		t.Errorf("greetings %+v", w.mail)
	}
	w.run(15 * time.Second)
	w.members[1].m.Greet()
	w.collect(1)
	if len(w.mail) != 0 {
		t.Errorf("messages %+v", w.mail)
	}
}
