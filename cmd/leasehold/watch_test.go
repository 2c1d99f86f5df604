package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// events returns a leader change, a note and two changes.
func events() []*leaseholdv1.WatchResponse {
	at := timestamppb.New(time.Date(2026, 11, 15, 10, 20, 31, 0, time.UTC))
	return []*leaseholdv1.WatchResponse{
		{At: at, Event: &leaseholdv1.WatchResponse_Leader{Leader: &leaseholdv1.NotLeader{Term: 3, Leader: "10.0.0.1:7400"}}},
		{At: at, Namespace: "presence", Event: &leaseholdv1.WatchResponse_Note{Note: &leaseholdv1.Note{What: "joined", Owner: "server-1", Text: "from 10.0.0.9\x1b[31m"}}},
		{At: at, Namespace: "presence", Missed: 2, Event: &leaseholdv1.WatchResponse_Change{Change: past()[2]}},
		{At: at, Namespace: "presence", Event: &leaseholdv1.WatchResponse_Change{Change: past()[0]}},
	}
}

// A lineCounter cancels the command's context after a number of lines.
type lineCounter struct {
	output bytes.Buffer
	left   int // lines until the cancellation
	cancel context.CancelFunc
}

func (l *lineCounter) Write(p []byte) (int, error) {
	if l.left -= bytes.Count(p, []byte("\n")); l.left <= 0 {
		l.cancel()
	}
	return l.output.Write(p)
}

// watchLines runs events --follow until it has printed a number of lines, and returns the output.
func watchLines(t *testing.T, lines int, args ...string) string {
	t.Helper()
	t.Setenv("TZ", "UTC")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &lineCounter{left: lines, cancel: cancel}
	var errs bytes.Buffer
	if got := run(ctx, append([]string{"events", "--follow"}, args...), out, &errs); got != int(cli.StatusOK) {
		t.Errorf("exit status %d: %s", got, errs.String())
	}
	return out.output.String()
}

func TestWatchOutput(t *testing.T) {
	f := startFake(t, &fakeManager{events: events()})
	local := func(text string) string {
		return strings.ReplaceAll(text, "TIME", cli.TimeText(time.Date(2026, 11, 15, 10, 20, 31, 0, time.UTC)))
	}
	want := local(`TIME  -  10.0.0.1:7400 leads  term 3
TIME  presence  joined  server-1  from 10.0.0.9` + "\uFFFD" + `[31m
... 2 events missed: the reader was too slow
TIME  presence  lsn 1200  vacated: expired  server-1  8000000000000000-end@17
TIME  presence  lsn 1202  moved from server-2  to server-3  8000000000000000-c000000000000000@43
`)
	if diff := cmp.Diff(want, watchLines(t, 5, "--managers", f.addr)); diff != "" {
		t.Error(diff)
	}
	want = `{"at":"2026-11-15T10:20:31Z","type":"leader","leader":{"term":"3","leader":"10.0.0.1:7400"}}
{"at":"2026-11-15T10:20:31Z","namespace":"presence","type":"note","note":{"what":"joined","owner":"server-1","text":"from 10.0.0.9\u001b[31m"}}
{"at":"2026-11-15T10:20:31Z","namespace":"presence","missed":2,"type":"change","change":{"lsn":"1200","at":"2026-11-15T10:20:30.5Z","kind":"vacated","start":"8000000000000000","limit":"end","generation":"17","owner":"server-1","session":"7365727665722d310000000000000000","addr":"server-1:8080","cause":"expired"}}
{"at":"2026-11-15T10:20:31Z","namespace":"presence","type":"change","change":{"lsn":"1202","at":"2026-11-15T10:20:32.5Z","kind":"moved","start":"8000000000000000","limit":"c000000000000000","generation":"43","owner":"server-3","session":"7365727665722d330000000000000000","addr":"server-3:8080","from":"server-2"}}
`
	if diff := cmp.Diff(want, watchLines(t, 4, "--managers", f.addr, "--json")); diff != "" {
		t.Error(diff)
	}
}

// TestWatchContinuesAfterFailure checks that a watch continues when a manager stops serving, and reports a gap.
func TestWatchContinuesAfterFailure(t *testing.T) {
	f := startFake(t, &fakeManager{events: events()[:1], failure: leasehold.Errorf("watch", leasehold.ErrUnavailable, "", "shutting down")})
	got := watchLines(t, 3, "--managers", f.addr, "--json")
	lines := strings.Split(got, "\n")
	if len(lines) < 3 || lines[0] != lines[2] {
		t.Errorf("the watch does not continue:\n%s", got)
	}
	const want = `,"type":"gap","text":"the connection to the manager broke, and events may be missing: watch: shutting down"}`
	if !strings.HasPrefix(lines[1], `{"at":"2`) || !strings.HasSuffix(lines[1], want) {
		t.Errorf("got %s\nwant %s", lines[1], want)
	}
}

// TestWatchRetriesDuringOutage checks that a watch continues after an outage of all managers, with one gap.
func TestWatchRetriesDuringOutage(t *testing.T) {
	f := startFake(t, &fakeManager{events: events()[:1], failure: leasehold.Errorf("watch", leasehold.ErrUnavailable, "", "shutting down"), away: 2})
	got := watchLines(t, 3, "--managers", f.addr, "--json")
	lines := strings.Split(got, "\n")
	if len(lines) < 3 || lines[0] != lines[2] || !strings.Contains(lines[1], `"type":"gap"`) {
		t.Errorf("the watch does not continue:\n%s", got)
	}
	if n := len(f.called()); n < 4 {
		t.Errorf("%d requests, want at least 4: 2 of them fail", n)
	}
}

// TestWatchEndsWhenRejected checks that a rejected watch is not retried at another manager, which would reject it, too.
func TestWatchEndsWhenRejected(t *testing.T) {
	f := startFake(t, &fakeManager{failure: leasehold.Errorf("watch", leasehold.ErrLimit, "", "there are 100 watchers already")})
	var errs bytes.Buffer
	got := run(t.Context(), []string{"events", "--follow", "--managers", f.addr}, io.Discard, &errs)
	if got != int(cli.StatusTrouble) || !strings.Contains(errs.String(), "there are 100 watchers already") {
		t.Errorf("exit status %d: %s", got, errs.String())
	}
}
