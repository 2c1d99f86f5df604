package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// followTop looks through managers until the test ends, and returns what it shows.
func followTop(t *testing.T, managers ...string) (*topSource, <-chan *topSnapshot) {
	t.Helper()
	c := newClient(&cobra.Command{})
	c.managers, c.timeout = managers, time.Minute
	disconnect, err := c.connect()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan *topSnapshot)
	ctx, cancel := context.WithCancel(t.Context())
	s := newTopSource(c, time.Millisecond, func(s *topSnapshot) {
		select {
		case seen <- s:
		case <-ctx.Done():
		}
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended; disconnect() })
	return s, seen
}

// until waits for a picture that is as wanted.
func until(t *testing.T, seen <-chan *topSnapshot, what string, wanted func(*topSnapshot) bool) *topSnapshot {
	t.Helper()
	giveUp := time.After(time.Minute)
	var last *topSnapshot
	for {
		select {
		case last = <-seen:
			if wanted(last) {
				return last
			}
		case <-giveUp:
			t.Fatalf("no picture %s; the last is %+v", what, last)
		}
	}
}

// When managers go away the picture stays, and when one is back it lives again.
func TestTopSurvivesManagers(t *testing.T) {
	f := inPresence(&fakeManager{unread: -1, events: events()})
	f.namespaces = append(f.namespaces, &leaseholdv1.NamespaceConfig{Name: "second"})
	stop := func() {}
	if _, err := f.start(func(end func()) { stop = end }); err != nil {
		t.Fatal(err)
	}
	second := startFake(t, &fakeManager{muted: true})
	source, seen := followTop(t, f.addr, second.addr)
	s := until(t, seen, "with a watched event", func(s *topSnapshot) bool { return len(s.Events) > 3 })
	if s.Namespace != "presence" || len(s.Owners) != 3 || s.Stale != nil || len(s.Moves.Moves) != 3 {
		t.Errorf("got %+v", s)
	}
	source.choose(topWish{namespace: "second"})
	until(t, seen, "of the second namespace", func(s *topSnapshot) bool { return s.Namespace == "second" })
	source.choose(topWish{namespace: "presence", page: pageRanges})
	s = until(t, seen, "of the ranges", func(s *topSnapshot) bool { return s.Namespace == "presence" && s.paged.of.page == pageRanges })
	if len(s.paged.ranges) == 0 || s.paged.ranges[0].Owner == "" {
		t.Errorf("got %+v", s.paged)
	}
	source.choose(topWish{namespace: "presence", page: pageKey, key: "0x8000000000000000"})
	s = until(t, seen, "of a key", func(s *topSnapshot) bool { return s.paged.of.page == pageKey })
	if f := s.paged.found; f == nil || f.key.key != leasehold.Key(1<<63) || f.held.Owner == "" || len(f.history.Entries) == 0 {
		t.Errorf("got %+v", s.paged)
	}
	source.choose(topWish{namespace: "presence", page: pageKey, key: "0xyz"})
	s = until(t, seen, "of what is no key", func(s *topSnapshot) bool { return s.paged.of.key == "0xyz" })
	if s.paged.found != nil || !strings.Contains(s.paged.problem, "hexadecimal") {
		t.Errorf("got %+v", s.paged)
	}
	source.choose(topWish{namespace: "presence", page: pageEvents})
	until(t, seen, "of the events", func(s *topSnapshot) bool { return s.paged.of.page == pageEvents && len(s.paged.log) > 0 })
	source.choose(topWish{namespace: "presence", page: pageLookups}) // which this manager is too old to know
	until(t, seen, "of the lookups", func(s *topSnapshot) bool { return s.paged.of.page == pageLookups && s.paged.problem != "" })
	stop()
	s = until(t, seen, "without managers", func(s *topSnapshot) bool { return s.Stale != nil })
	if len(s.Owners) != 3 || !strings.Contains(s.Stale.Why, f.addr+": connection refused "+second.addr+": nobody leads") {
		t.Errorf("%+v: want the last picture, and why", s.Stale)
	}
	second.lead(f.namespaces...)
	s = until(t, seen, "from the second manager", func(s *topSnapshot) bool { return s.Stale == nil })
	if len(s.Owners) != 3 {
		t.Errorf("got %+v", s)
	}
}

// An event that is told twice is one, and the bound holds.
func TestTopLog(t *testing.T) {
	l := &topLog{}
	at := time.Date(2026, 11, 15, 10, 20, 31, 0, time.UTC)
	change := func(lsn uint64) admin.Event {
		return admin.Change{LSN: leasehold.LSN(lsn), At: at.Add(time.Duration(lsn) * time.Second)}.Event("x")
	}
	l.add(change(5), change(7))
	l.add(change(6), change(7))
	l.leaders([]admin.Leadership{{At: at, Leader: "m", Term: 2}})
	l.leaders([]admin.Leadership{{At: at, Leader: "m", Term: 2}})
	var got []string
	for _, e := range l.tail("x", 10) {
		got = append(got, strings.Join(eventWords(e), " "))
	}
	if len(got) != 4 || !strings.Contains(ansi.Strip(got[0]), "m leads") || !strings.Contains(got[1], "lsn 5") || !strings.Contains(got[2], "lsn 6") {
		t.Errorf("got %q", got)
	}
	for i := range uint64(2 * mostLogged) {
		l.add(change(i))
	}
	if len(l.events) != mostLogged || len(l.tail("y", 10)) != 0 || len(l.tail("x", 10)) != 10 {
		t.Errorf("there are %d events", len(l.events))
	}
}

// A leader that could not renew its time and then did leads again in the same term: the
// log must not end with nobody.
func TestTopLogOfLeaders(t *testing.T) {
	l := &topLog{}
	at := func(second int, leader string) admin.Leadership {
		return admin.Leadership{At: time.Date(2026, 11, 15, 10, 20, second, 0, time.UTC), Leader: leader, Term: 3}
	}
	watched := at(40, "m").Event() // a watch begins with who leads
	l.add(watched)
	for range 2 { // at every look, newest first
		l.leaders([]admin.Leadership{at(30, "m"), at(29, ""), at(20, "m")})
	}
	l.add(watched)
	var got []string
	for _, e := range l.tail("x", 10) {
		got = append(got, fmt.Sprint(e.At.Second(), e.Leader.Leader))
	}
	if diff := cmp.Diff([]string{"20m", "29", "30m"}, got); diff != "" {
		t.Error(diff)
	}
}

// With --json there is a line for each look until it is interrupted.
func TestTopStream(t *testing.T) {
	f := startFake(t, inPresence(&fakeManager{}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines := &countingWriter{after: 3, then: cancel}
	if got := run(ctx, []string{"top", "--json", "--every", "100ms", "--managers", f.addr}, lines, lines); got != 0 {
		t.Fatalf("exit status %d\n%s", got, lines.written.String())
	}
	for line := range strings.Lines(lines.written.String()) {
		var s topSnapshot
		if err := json.Unmarshal([]byte(line), &s); err != nil || s.Namespace != "presence" || len(s.Owners) != 3 {
			t.Errorf("%v: %s", err, line)
		}
	}
}

// A countingWriter calls a function after so many writes.
type countingWriter struct {
	written bytes.Buffer
	after   int
	then    func()
}

func (w *countingWriter) Write(p []byte) (int, error) {
	if w.after--; w.after == 0 {
		w.then()
	}
	return w.written.Write(p)
}
