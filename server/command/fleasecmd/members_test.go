package fleasecmd

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/server/fleasecontrol"
)

// FuzzFleaseMembers: members have an id above 0 and an address, and are in the order of ids.
func FuzzFleaseMembers(f *testing.F) {
	for _, text := range []string{"1=127.0.0.1:7001,2=b:1", "0=a:1", "4294967296=a:1", "1=a", "+1=a:1", "1==a:1", ",", "2=a:1,1=b:1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		members, err := parseMembers("--members", strings.Split(text, ","))
		if err != nil {
			return
		}
		for i, m := range members {
			if m.ID == 0 || cli.CheckAddr(m.Addr) != nil || i > 0 && members[i-1].ID > m.ID {
				t.Fatalf("%q is read as %v", text, members)
			}
		}
	})
}

func TestFleaseStatusShowsStrangers(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	s := fleasecontrol.Status{Status: flease.Status{
		Members: []flease.MemberStatus{
			{Member: flease.Member{ID: 2, Addr: "a:1"}},
			{Member: flease.Member{ID: 3, Addr: "b:1"}, Heard: now, Twins: now.Add(-time.Second)},
		},
		Strangers: []flease.StrangerStatus{{ID: 4, Heard: now.Add(-2 * time.Second)}, {ID: 5, Heard: now, Waits: true}},
		Traffic:   flease.Traffic{PacketsIn: 7, Refused: 5},
	}}
	text := fleaseStatusText(&s, now)
	for _, want := range []string{"     -\n", "from two processes 1s ago", "7 received", "5 rejected", "waits until processes of another configuration stop", "Processes with other members", "4  2s ago  votes", "5  0s ago  waits"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	s = fleasecontrol.Status{Status: flease.Status{Ready: true}}
	if text := fleaseStatusText(&s, now); strings.Contains(text, "STRANGER") {
		t.Error(text)
	}
}
