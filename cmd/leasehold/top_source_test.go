package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/top"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// followTop runs the source of top until the test ends, and returns it and its snapshots.
func followTop(t *testing.T, managers ...string) (*top.Source, <-chan *top.Snapshot) {
	t.Helper()
	c := cli.NewClient(&cobra.Command{})
	c.Managers, c.Timeout = managers, time.Minute
	disconnect, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan *top.Snapshot)
	ctx, cancel := context.WithCancel(t.Context())
	s := top.NewSource(c, time.Millisecond, func(s *top.Snapshot) {
		select {
		case seen <- s:
		case <-ctx.Done():
		}
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended; disconnect() })
	return s, seen
}

// until waits for a snapshot that meets a condition.
func until(t *testing.T, seen <-chan *top.Snapshot, what string, condition func(*top.Snapshot) bool) *top.Snapshot {
	t.Helper()
	timeout := time.After(time.Minute)
	var last *top.Snapshot
	for {
		select {
		case last = <-seen:
			if condition(last) {
				return last
			}
		case <-timeout:
			t.Fatalf("no snapshot %s; the last is %+v", what, last)
		}
	}
}

// While no manager responds, the last snapshot is kept. It is updated again once a manager responds.
func TestTopSurvivesManagers(t *testing.T) {
	f := inPresence(&fakeManager{unread: -1, events: events()})
	f.namespaces = append(f.namespaces, &leaseholdv1.NamespaceConfig{Name: "second"})
	stop := func() {}
	if _, err := f.start(func(end func()) { stop = end }); err != nil {
		t.Fatal(err)
	}
	second := startFake(t, &fakeManager{muted: true})
	source, seen := followTop(t, f.addr, second.addr)
	s := until(t, seen, "with a watched event", func(s *top.Snapshot) bool { return len(s.Events) > 3 })
	if s.Namespace != "presence" || len(s.Owners) != 3 || s.Stale != nil || len(s.Moves.Moves) != 3 {
		t.Errorf("got %+v", s)
	}
	source.Choose(top.Wish{Namespace: "second"})
	until(t, seen, "of the second namespace", func(s *top.Snapshot) bool { return s.Namespace == "second" })
	source.Choose(top.Wish{Namespace: "presence", Page: top.PageRanges})
	s = until(t, seen, "of the ranges", func(s *top.Snapshot) bool {
		return s.Namespace == "presence" && s.Paged.Of.Page == top.PageRanges
	})
	if len(s.Paged.Ranges) == 0 || s.Paged.Ranges[0].Owner == "" {
		t.Errorf("got %+v", s.Paged)
	}
	source.Choose(top.Wish{Namespace: "presence", Page: top.PageKey, Key: "0x8000000000000000"})
	s = until(t, seen, "of a key", func(s *top.Snapshot) bool { return s.Paged.Of.Page == top.PageKey })
	if f := s.Paged.Found; f == nil || f.Key.Key != leasehold.Key(1<<63) || f.Held.Owner == "" || len(f.History.Entries) == 0 {
		t.Errorf("got %+v", s.Paged)
	}
	source.Choose(top.Wish{Namespace: "presence", Page: top.PageKey, Key: "0xyz"})
	s = until(t, seen, "of an invalid key", func(s *top.Snapshot) bool { return s.Paged.Of.Key == "0xyz" })
	if s.Paged.Found != nil || !strings.Contains(s.Paged.Problem, "hexadecimal") {
		t.Errorf("got %+v", s.Paged)
	}
	source.Choose(top.Wish{Namespace: "presence", Page: top.PageEvents})
	until(t, seen, "of the events", func(s *top.Snapshot) bool { return s.Paged.Of.Page == top.PageEvents && len(s.Paged.Log) > 0 })
	source.Choose(top.Wish{Namespace: "presence", Page: top.PageLookups}) // which this manager does not support
	until(t, seen, "of the lookups", func(s *top.Snapshot) bool { return s.Paged.Of.Page == top.PageLookups && s.Paged.Problem != "" })
	stop()
	s = until(t, seen, "without managers", func(s *top.Snapshot) bool { // a request in flight ends with another error
		return s.Stale != nil && strings.Contains(s.Stale.Why, f.addr+": connection refused; "+second.addr+": no manager leads")
	})
	if len(s.Owners) != 3 {
		t.Errorf("got %+v, want the owners of the last snapshot", s)
	}
	second.lead(f.namespaces...)
	s = until(t, seen, "from the second manager", func(s *top.Snapshot) bool { return s.Stale == nil })
	if len(s.Owners) != 3 {
		t.Errorf("got %+v", s)
	}
}

// The log drops duplicate events, and has at most top.MostLogged events.
func TestTopLog(t *testing.T) {
	l := &top.Log{}
	at := time.Date(2026, 11, 15, 10, 20, 31, 0, time.UTC)
	change := func(lsn uint64) admin.Event {
		return admin.Change{LSN: leasehold.LSN(lsn), At: at.Add(time.Duration(lsn) * time.Second)}.Event("x")
	}
	l.Add(change(5), change(7))
	l.Add(change(6), change(7))
	l.Leaders([]admin.Leadership{{At: at, Leader: "m", Term: 2}})
	l.Leaders([]admin.Leadership{{At: at, Leader: "m", Term: 2}})
	var got []string
	for _, e := range l.Tail("x", 10) {
		got = append(got, strings.Join(cli.EventWords(e), " "))
	}
	if len(got) != 4 || !strings.Contains(ansi.Strip(got[0]), "m leads") || !strings.Contains(got[1], "lsn 5") || !strings.Contains(got[2], "lsn 6") {
		t.Errorf("got %q", got)
	}
	for i := range uint64(2 * top.MostLogged) {
		l.Add(change(i))
	}
	if len(l.Events) != top.MostLogged || len(l.Tail("y", 10)) != 0 || len(l.Tail("x", 10)) != 10 {
		t.Errorf("there are %d events", len(l.Events))
	}
}

// A leader that renews its leadership late leads again in the same term: the log must not end without a leader.
func TestTopLogOfLeaders(t *testing.T) {
	l := &top.Log{}
	at := func(second int, leader string) admin.Leadership {
		return admin.Leadership{At: time.Date(2026, 11, 15, 10, 20, second, 0, time.UTC), Leader: leader, Term: 3}
	}
	watched := at(40, "m").Event() // a watch begins with the leader
	l.Add(watched)
	for range 2 { // each poll, newest first
		l.Leaders([]admin.Leadership{at(30, "m"), at(29, ""), at(20, "m")})
	}
	l.Add(watched)
	var got []string
	for _, e := range l.Tail("x", 10) {
		got = append(got, fmt.Sprint(e.At.Second(), e.Leader.Leader))
	}
	if diff := cmp.Diff([]string{"20m", "29", "30m"}, got); diff != "" {
		t.Error(diff)
	}
}

// With --json, top prints a line per poll until it is interrupted.
func TestTopStream(t *testing.T) {
	f := startFake(t, inPresence(&fakeManager{}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines := &countingWriter{left: 3, then: cancel}
	if got := run(ctx, []string{"top", "--json", "--every", "100ms", "--managers", f.addr}, lines, lines); got != 0 {
		t.Fatalf("exit status %d\n%s", got, lines.written.String())
	}
	for line := range strings.Lines(lines.written.String()) {
		var s top.Snapshot
		if err := json.Unmarshal([]byte(line), &s); err != nil || s.Namespace != "presence" || len(s.Owners) != 3 {
			t.Errorf("%v: %s", err, line)
		}
	}
}

// A countingWriter calls a function at the n-th write.
type countingWriter struct {
	written bytes.Buffer
	left    int // writes until the call
	then    func()
}

func (w *countingWriter) Write(p []byte) (int, error) {
	if w.left--; w.left == 0 {
		w.then()
	}
	return w.written.Write(p)
}
