package manager

import (
	"math/rand/v2"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// F7: a change that does not apply is a bug. It must not be stored, where it would stop every successor.
func TestInvalidChangesAreNotStored(t *testing.T) {
	m, err := New(0, Config{Namespace: "n", Self: "m", Rand: rand.New(rand.NewPCG(1, 2))}, 1, mono.Never, &storage.State{})
	if err != nil {
		t.Fatal(err)
	}
	m.Advance(0)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
		for _, a := range m.out {
			if _, is := a.(Commit); is {
				t.Error("it is sent to the store")
			}
		}
	}()
	m.commit(0, &storage.Batch{Namespace: "n", Term: 1, Changes: []table.Change{{
		LSN: 1, Kind: table.Vacated, Range: leasehold.All, Generation: 9, Holder: &table.Holder{Owner: "o", Session: leasehold.Session{1}},
	}}})
}
