package flease_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// starting is a world in which process 1 of three starts again. It takes part
// 12 s later, if nothing is in its way.
func starting(t *testing.T) *world {
	w := newWorld(t, 3)
	w.mail = nil
	w.start(1)
	return w
}

// strange has process 1 hear a stranger.
func (w *world) strange(e flease.Envelope) (flease.Envelope, bool) {
	e.Incarnation = 4711
	return w.members[1].m.Strange(w.time(1), &e)
}

// wantReadyAfter lets time pass, and wants process 1 to take part at its end and
// not before.
func (w *world) wantReadyAfter(d time.Duration) {
	w.t.Helper()
	w.pass(d - 100*time.Millisecond)
	if w.members[1].m.Ready() {
		w.t.Errorf("takes part before %v have passed", d)
	}
	w.pass(200 * time.Millisecond)
	if !w.members[1].m.Ready() {
		w.t.Errorf("does not take part after %v", d)
	}
}

// What a stranger does to one who has just started.
func TestStrangers(t *testing.T) {
	const silence, later = 12 * time.Second, 5 * time.Second
	for name, test := range map[string]struct {
		hears func(*world)
		want  time.Duration // until it takes part, from 5 s after its start on
	}{
		"nobody": {func(*world) {}, silence - later},
		"one that takes part": {func(w *world) {
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall})
		}, silence},
		"one that takes part, and two of us that wait, or do so, too": {func(w *world) {
			w.friend(2, true)
			w.friend(3, false)
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall})
		}, silence},
		"three that wait, of which one was heard long ago, and three of us": {func(w *world) {
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
		"two that wait, and one of us that takes part": {func(w *world) {
			w.friend(2, false)
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall, Waiting: true})
			w.strange(flease.Envelope{From: 8, Sent: w.time(1).Wall, Waiting: true})
		}, silence - later},
		"one of us who becomes a stranger": {func(w *world) {
			w.friend(2, true)
			w.strange(flease.Envelope{From: 2, Sent: w.time(1).Wall, Waiting: true})
		}, silence},
		"one of long ago": {func(w *world) {
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall.Add(-time.Minute)})
		}, silence - later},
		"one whose clock is wrong, and who has heard us": {func(w *world) {
			w.strange(flease.Envelope{From: 7, Sent: w.time(1).Wall.Add(-time.Hour), To: w.members[1].inc})
		}, silence},
	} {
		t.Run(name, func(t *testing.T) {
			w := starting(t)
			w.t = t
			w.pass(later)
			test.hears(w)
			w.wantReadyAfter(test.want)
		})
	}
}

// friend has process 1 hear a greeting of another of its group.
func (w *world) friend(id flease.Process, waiting bool) {
	e := &flease.Envelope{From: id, Incarnation: w.members[id].inc, Sent: w.time(id).Wall, Waiting: waiting}
	w.members[1].m.Receive(w.time(1), e, nil)
}

// Only those who wait are answered, and what is an answer is not: two strangers do
// not go on for ever.
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
		t.Error("an answer was answered")
	}
	if _, ok := w.strange(flease.Envelope{From: 7}); ok {
		t.Error("one who takes part was answered")
	}
	w.run(15 * time.Second)
	greeting.To = 0
	if answer, ok := w.strange(greeting); !ok || answer.Waiting {
		t.Errorf("one who takes part answers %+v, %t", answer, ok)
	}
}

// Greetings are for those who do not take part yet.
func TestGreet(t *testing.T) {
	w := starting(t)
	w.members[1].m.Greet()
	w.collect(1)
	if len(w.mail) != 3 || !w.mail[0].e.Waiting || len(w.mail[0].msgs) != 0 || w.mail[2].to != 1 {
		t.Errorf("greets with %+v", w.mail)
	}
	w.run(15 * time.Second)
	w.members[1].m.Greet()
	w.collect(1)
	if len(w.mail) != 0 {
		t.Errorf("says %+v", w.mail)
	}
}
