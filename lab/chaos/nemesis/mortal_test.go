package nemesis

import (
	"context"
	"testing"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
)

// TestSparedMembersAreNotEnded: faults that end a process do not strike a spared one, and others may.
func TestSparedMembersAreNotEnded(t *testing.T) {
	spared := &cluster.Member{Spared: true}
	n := &Nemesis{Cluster: &cluster.Cluster{Managers: []*cluster.Member{spared}}}
	for name, do := range map[string]deed{
		"kill": kill(1, anyManager), "two": kill(2, anyManager), "all": kill(all, anyManager), "half": killHalf(anyManager), "restart": restart(anyManager),
		"upgrade": upgrade(), "shift": revise(shiftClock), "rate": revise(rateClock), "set": setClock(), "stray": stray(1, anyManager), "starve": starve(),
	} {
		if victims, _, err := do(context.Background(), n, Strike{}); victims != "" || err != nil || !spared.Claim() {
			t.Errorf("%s: %q, %v", name, victims, err)
		}
		spared.Release()
	}
	if claim(anyManager(context.Background(), n, Strike{}), 1) == nil {
		t.Error("a spared process cannot be paused")
	}
}

// TestHalf: half of the members are killed, or fewer if others are claimed.
func TestHalf(t *testing.T) {
	for claimed, want := range map[int]string{0: "o o o", 2: "o o o", 3: "o o", 4: ""} {
		var all []*cluster.Member
		for i := range 5 {
			m := &cluster.Member{}
			if m.Name = "o"; i < claimed {
				m.Claim()
			}
			all = append(all, m)
		}
		n := &Nemesis{Cluster: &cluster.Cluster{Owners: all}}
		if victims, _, err := killHalf(anyOwner)(context.Background(), n, Strike{}); victims != want || err != nil {
			t.Errorf("of 5 with %d claimed, %q are killed, want %q: %v", claimed, victims, want, err)
		}
	}
}

// TestSingle: one strike at a time.
func TestSingle(t *testing.T) {
	victims := "m1"
	do := single(func(context.Context, *Nemesis, Strike) (string, func() error, error) {
		return victims, func() error { return nil }, nil
	})
	strike := func(want string) (heal func() error) {
		t.Helper()
		got, heal, err := do(context.Background(), nil, Strike{})
		if got != want || err != nil {
			t.Errorf("victims %q, want %q: %v", got, want, err)
		}
		return heal
	}
	heal := strike("m1")
	strike("")
	_ = heal() // the error is always nil
	victims = ""
	strike("")
	victims = "m2"
	strike("m2")
}
