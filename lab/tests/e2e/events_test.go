//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
)

// A reportedChange is a change in the output of "events" and "key history".
type reportedChange struct {
	LSN                             uint64 `json:",string"`
	At, Kind, Cause, Owner, Session string
}

// eventsOf returns all changes of a namespace and all leaders, from the command "events".
func (g *group) eventsOf(t *testing.T, ns string) (changes []reportedChange, leaders []string) {
	t.Helper()
	var d struct {
		More, Truncated bool
		Events          []struct {
			Type   string
			Change reportedChange
			Leader struct{ Leader string }
		}
	}
	g.command(t, &d, "events", "--namespace="+ns)
	if d.More || d.Truncated {
		t.Errorf("the list is incomplete: more is %t, truncated is %t", d.More, d.Truncated)
	}
	for _, e := range d.Events {
		switch e.Type {
		case "change":
			changes = append(changes, e.Change)
		case "leader":
			leaders = append(leaders, e.Leader.Leader)
		}
	}
	return changes, leaders
}

// command runs a command with --json and decodes its output.
func (g *group) command(t *testing.T, document any, args ...string) {
	t.Helper()
	status, stdout, stderr := run(t, append(args, "--json", "--managers="+strings.Join(g.addrs(), ","))...)
	if status != 0 {
		t.Fatalf("%v: exit status %d: %s", args, status, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), document); err != nil {
		t.Fatalf("%v: %v: %s", args, err, stdout)
	}
}

// TestEventsSurviveFailovers: every leader serves the complete event history of a namespace,
// including events that earlier leaders recorded.
func TestEventsSurviveFailovers(t *testing.T) {
	t.Parallel()
	for store, start := range map[string]func(t *testing.T) *group{
		"embedded": func(t *testing.T) *group { return startThree(t, "--ttl="+leaderTTL.String()) },
		"etcd":     func(t *testing.T) *group { return startEtcd(t).managers(t, 3) },
	} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			const ns = "told"
			g := start(t)
			g.createNamespace(t, ns, lostLease)
			g.join(t, ns, "ann")
			victim := g.joinProcess(t, ns, "victim")
			g.waitForAssignment(t, ns, "ann", "victim")
			had := g.leasesOf(t, ns, "victim")
			began := time.Now()
			victim.kill()
			g.waitForAssignment(t, ns, "ann")
			before, _ := g.eventsOf(t, ns)
			lost := 0
			for _, c := range before {
				if c.Owner == "victim" && c.Cause == "expired" {
					lost++
				}
			}
			if lost != len(had) {
				t.Errorf("%d expired leases of the victim in the events, want %d: %+v", lost, len(had), before)
			}

			first := g.leader(t)
			first.kill()
			rest := g.without(first)
			second := rest.leader(t)
			g.wantEvents(t, rest, ns, before)
			if _, leaders := rest.eventsOf(t, ns); len(leaders) == 0 || leaders[len(leaders)-1] != second.addr {
				t.Errorf("%s leads, and the leaders in the events are %v", second.addr, leaders)
			}
			first.start(t) // its history includes the time when it was down
			eventually(t, "the manager serves again", func() error {
				if s, err := getStatus(t, first.addr); err != nil || s.GetLeader() == "" {
					return errors.Join(err, errNotYet)
				}
				return nil
			})
			g.wantEvents(t, &group{managers: []*manager{first}}, ns, before)
			g.wantLossInHistory(t, ns, had[0].Range.Start, began)
		})
	}
}

// wantEvents requires that managers serve the events from before, and later ones.
func (g *group) wantEvents(t *testing.T, by *group, ns string, before []reportedChange) {
	t.Helper()
	after, _ := by.eventsOf(t, ns)
	if len(after) < len(before) {
		t.Fatalf("%d changes, want at least %d", len(after), len(before))
	}
	if diff := cmp.Diff(before, after[:len(before)]); diff != "" {
		t.Errorf("events of %v differ (-before +after):\n%s", by.addrs(), diff)
	}
}

// wantLossInHistory requires the loss and the next grant in the history of a key.
func (g *group) wantLossInHistory(t *testing.T, ns string, key leasehold.Key, since time.Time) {
	t.Helper()
	var d struct{ Entries []reportedChange }
	g.command(t, &d, "key", "history", "--hex", key.String(), "--namespace="+ns, "--since="+since.UTC().Format(time.RFC3339Nano))
	var entries []string
	for _, c := range d.Entries {
		entries = append(entries, strings.TrimSpace(c.Kind+" "+c.Owner+" "+c.Cause))
	}
	// Newest first, down to the entry that was valid at the start.
	lost, got := slices.Index(entries, "vacated victim expired"), slices.Index(entries, "granted ann")
	if lost < 0 || got < 0 || got > lost || lost+2 != len(entries) || d.Entries[lost+1].Owner != "victim" {
		t.Errorf("the history of %v is %q", key, entries)
	}
}
