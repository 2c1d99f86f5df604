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

// A toldChange is what "events" and "key history" say of one, as far as a test cares.
type toldChange struct {
	LSN                             uint64 `json:",string"`
	At, Kind, Cause, Owner, Session string
}

// journalOf asks managers with the command for all changes of a namespace, and for who
// has led.
func (g *group) journalOf(t *testing.T, ns string) (changes []toldChange, leaders []string) {
	t.Helper()
	var d struct {
		More, Truncated bool
		Events          []struct {
			Type   string
			Change toldChange
			Leader struct{ Leader string }
		}
	}
	g.command(t, &d, "events", "--namespace="+ns)
	if d.More || d.Truncated {
		t.Errorf("something is missing: more is %t, truncated is %t", d.More, d.Truncated)
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

// command runs a command that prints a document.
func (g *group) command(t *testing.T, document any, args ...string) {
	t.Helper()
	status, stdout, stderr := run(t, append(args, "--json", "--managers="+strings.Join(g.addrs(), ","))...)
	if status != 0 {
		t.Fatalf("%v ended with status %d: %s", args, status, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), document); err != nil {
		t.Fatalf("%v: %v: %s", args, err, stdout)
	}
}

// TestEventsSurviveFailovers: what has happened to a namespace, and why, is told by every
// manager that ever leads, whoever wrote it down.
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
			g.settled(t, ns, "ann", "victim")
			had := g.leasesOf(t, ns, "victim")
			began := time.Now()
			victim.kill()
			g.settled(t, ns, "ann")
			before, _ := g.journalOf(t, ns)
			lost := 0
			for _, c := range before {
				if c.Owner == "victim" && c.Cause == "expired" {
					lost++
				}
			}
			if lost != len(had) {
				t.Errorf("%d leases of the victim are told to have expired, want %d: %+v", lost, len(had), before)
			}

			first := g.leader(t)
			first.kill()
			rest := g.without(first)
			second := rest.leader(t)
			g.toldBy(t, rest, ns, before)
			if _, leaders := rest.journalOf(t, ns); len(leaders) == 0 || leaders[len(leaders)-1] != second.addr {
				t.Errorf("%s leads, and the leaders that are told are %v", second.addr, leaders)
			}
			first.start(t) // it knows what it did not see
			eventually(t, "it serves again", func() error {
				if s, err := getStatus(t, first.addr); err != nil || s.GetLeader() == "" {
					return errors.Join(err, errNotYet)
				}
				return nil
			})
			g.toldBy(t, &group{managers: []*manager{first}}, ns, before)
			g.held(t, ns, had[0].Range.Start, began)
		})
	}
}

// toldBy wants managers to tell the same as before, and what has happened since.
func (g *group) toldBy(t *testing.T, by *group, ns string, before []toldChange) {
	t.Helper()
	after, _ := by.journalOf(t, ns)
	if len(after) < len(before) {
		t.Fatalf("%d changes are told, and there were %d", len(after), len(before))
	}
	if diff := cmp.Diff(before, after[:len(before)]); diff != "" {
		t.Errorf("%v tell something else (-before +after):\n%s", by.addrs(), diff)
	}
}

// held wants the history of a key to say that a server lost it, and another got it.
func (g *group) held(t *testing.T, ns string, key leasehold.Key, since time.Time) {
	t.Helper()
	var d struct{ Entries []toldChange }
	g.command(t, &d, "key", "history", "--hex", key.String(), "--namespace="+ns, "--since="+since.UTC().Format(time.RFC3339Nano))
	var said []string
	for _, c := range d.Entries {
		said = append(said, strings.TrimSpace(c.Kind+" "+c.Owner+" "+c.Cause))
	}
	// Newest first, down to what was in force then.
	lost, got := slices.Index(said, "vacated victim expired"), slices.Index(said, "granted ann")
	if lost < 0 || got < 0 || got > lost || lost+2 != len(said) || d.Entries[lost+1].Owner != "victim" {
		t.Errorf("the history of %v is %q", key, said)
	}
}
