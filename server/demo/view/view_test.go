package view

import (
	"bytes"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/server/demo"
)

func someSnapshot() demo.Snapshot {
	return demo.Snapshot{
		Elapsed: 12340 * time.Millisecond, Of: 30 * time.Second,
		Leader: "m2", Term: 3, Dashboard: "http://127.0.0.1:20001/",
		Managers:  []demo.Participant{{Name: "m1"}, {Name: "m2", Alive: true}, {Name: "m3", Alive: true}},
		Owners:    []demo.Participant{{Name: "owner-1", Alive: true, Share: 0.75}, {Name: "owner-2", Share: 0.25}},
		PerSecond: 998.7, Median: 1200 * time.Microsecond, Slow: 30 * time.Millisecond,
		Report: demo.Report{
			Seconds: 12.34,
			CallCounts: demo.CallCounts{
				Requests: 12000, Misroutes: 1, Retries: 1, Availability: 0.95, Eventually: 1, FirstTry: 0.98, MedianMillis: 1.25, P99Millis: 31,
			},
			LossCounts:      demo.LossCounts{Losses: 14, LossesFor: map[string]uint64{"expired": 2, "restarted": 12}, Republished: 1},
			OwnershipCounts: demo.OwnershipCounts{Checked: 12001, Tenures: 3000},
			FaultCounts:     demo.FaultCounts{OwnersKilled: 1, OwnersStopped: 1, Restarts: 3, LeadersKilled: 2, FailoverMillis: []int64{2840, 2400}},
		},
		Events: []demo.Event{{Number: 1, At: time.Second, Text: "m1 leads"}, {Number: 2, At: 8 * time.Second, Text: "killed m1, the leader"}},
	}
}

func TestScreen(t *testing.T) {
	s := someSnapshot()
	const want = `Leasehold demo  12s of 30s  (q ends it)

managers   ✗ m1  ★ m2  · m3    m2 leads, in term 3
dashboard  http://127.0.0.1:20001/

  owner-1   75.0 %  ████████████████████████████████████████
✗ owner-2   25.0 %  █████████████

requests   999/s, half within 1.2 ms, 99 % within 30.0 ms
so far     12,000 requests, 0 failures, 1 refused by a server that was not the owner
killed     2 leaders (failover 2.8 s, 2.4 s), 1 owner; 1 stopped for a while, 3 restarted
losses     14 lost ranges notified to users (2 expired, 12 restarted); 1 status set again; 0 silent
ownership  0 dual ownerships in 3,000 tenures and 12,001 operations

What happened
   1.0s m1 leads
   8.0s killed m1, the leader
`
	if diff := cmp.Diff(trimmed(want), trimmed(ansi.Strip(screen(&s, 100, 40, false)))); diff != "" {
		t.Error(diff)
	}
}

// trimmed removes trailing spaces of lines.
func trimmed(text string) string {
	lines := strings.Split(strings.TrimRight(text, " \n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func TestScreenFits(t *testing.T) {
	s := someSnapshot()
	for i := range 60 {
		s.Events = append(s.Events, demo.Event{Number: i + 3, Text: strings.Repeat("long ", 40)})
	}
	for _, width := range []int{1, 20, 30, 80, 200} {
		if got := lipgloss.Width(screen(&s, width, 24, false)); got > width {
			t.Errorf("%d columns wide, want at most %d", got, width)
		}
	}
	if got := lipgloss.Height(screen(&s, 80, 24, false)); got > 24 {
		t.Errorf("%d lines, want at most 24", got)
	}
}

func TestTitles(t *testing.T) {
	for _, test := range []struct {
		s      demo.Snapshot
		ending bool
		want   string
	}{
		{demo.Snapshot{}, false, "starting"},
		{demo.Snapshot{Elapsed: time.Minute}, false, "1m0s"},
		{demo.Snapshot{Elapsed: time.Minute}, true, "ending"},
	} {
		if got := ansi.Strip(title(&test.s, test.ending)); !strings.Contains(got, "  "+test.want+"  ") {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if got := ansi.Strip(managersLine(&demo.Snapshot{})); !strings.Contains(got, "no leader") {
		t.Errorf("got %q", got)
	}
}

func TestModel(t *testing.T) {
	stopped := 0
	var m tea.Model = model{stop: func() { stopped++ }}
	m, _ = m.Update(tea.WindowSizeMsg{Width: 70, Height: 20})
	m, _ = m.Update(someSnapshot())
	m, _ = m.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
	if stopped != 0 {
		t.Error("a key that is not quit ends the view")
	}
	if got := m.View(); !got.AltScreen || !strings.Contains(ansi.Strip(got.Content), "12s of 30s") {
		t.Errorf("got %+v", got)
	}
	m, _ = m.Update(tea.KeyPressMsg{Code: 'q', Text: "q"})
	m, _ = m.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	if stopped != 2 || !strings.Contains(ansi.Strip(m.View().Content), "ending") {
		t.Errorf("stopped %d times", stopped)
	}
}

func TestNarratorWritesEachEventOnce(t *testing.T) {
	var out bytes.Buffer
	n := Narrator{Out: &out}
	s := someSnapshot()
	n.Watch(s)
	n.Watch(s)
	s.Events = append(s.Events[1:], demo.Event{Number: 3, At: 9 * time.Second, Text: "m1 is back"})
	n.Watch(s)
	const want = `   1.0s m1 leads
   8.0s killed m1, the leader
        999 requests/s, 12,000 requests, 0 failures, 14 loss notices, 0 dual ownerships
   9.0s m1 is back
`
	if diff := cmp.Diff(want, ansi.Strip(out.String())); diff != "" {
		t.Error(diff)
	}
}

func TestText(t *testing.T) {
	s := someSnapshot()
	s.Report.Kept = "/tmp/x"
	const want = `Demo
requests      12,000 in 12.3 s, 98.00 % at the first try; half within 1.2 ms, 99 % within 31.0 ms of when they were due
availability  95.00 % succeeded within 1 s, 100.00 % in the end: 0 failures, 1 retry, 1 refused by a server that was not the owner
killed        2 leaders, 1 owner; 1 owner stopped for longer than its leases last; 3 owners restarted, for which 0 ranges lost
failover      2.8 s, 2.4 s; 0 leases lost in it
losses        users were notified of 14 lost ranges (2 expired, 12 restarted), and set 1 status again; 0 silent
ownership     0 dual ownerships in 3,000 tenures and 12,001 operations
kept          /tmp/x
`
	if diff := cmp.Diff(want, ansi.Strip(Text(&s.Report))); diff != "" {
		t.Error(diff)
	}
}

func rollingReport() demo.Report {
	r := someSnapshot().Report
	r.Losses, r.LossesFor, r.Republished, r.FailoverMillis = 0, nil, 0, nil
	r.Rolling, r.Restarts, r.Rounds, r.MovedRanges, r.MovedShare = true, 10, 1, 182, 1.94
	r.Keys, r.ValueSize, r.LookedUp = 1000000, 200, 1000000
	r.Unavailable = demo.Unavailability{Keys: 500, Times: 972, Median: 12.25, P99: 41, Max: 60.5}
	return r
}

func TestRollingText(t *testing.T) {
	r := rollingReport()
	const want = `Rolling restart
requests      12,000 in 12.3 s, 98.00 % at the first try; half within 1.2 ms, 99 % within 31.0 ms of when they were due
availability  95.00 % succeeded within 1 s, 100.00 % in the end: 0 failures, 1 retry, 1 refused by a server that was not the owner
restarted     10 owners, in 1 whole round; 182 ranges moved, which makes each key move 1.9 times
unavailable   a key that moved: half within 12.2 ms, 99 % within 41.0 ms, 60.5 ms at most; seen 972 times on 500 keys
keys          1,000,000 of 200 bytes; 1,000,000 looked through at the end
losses        users were notified of 0 lost ranges, and set 0 statuses again; 0 silent
ownership     0 dual ownerships in 3,000 tenures and 12,001 operations
`
	if diff := cmp.Diff(want, ansi.Strip(Text(&r))); diff != "" {
		t.Error(diff)
	}
	s := someSnapshot()
	s.Report = r
	if got := ansi.Strip(screen(&s, 120, 40, false)); !strings.Contains(got, "restarted  10 owners, in 1 whole round; a key that moves has no answer for 12 ms in half of the cases, 41 ms in 99 %") {
		t.Error(got)
	}
}
