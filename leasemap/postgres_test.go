//go:build unix

package leasemap_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/anishathalye/porcupine"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/leasehold-dev/leasehold/fence/pgmap"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/internal/testkit/realservice"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// Servers whose maps are stored in PostgreSQL are killed, paused beyond their leases, partitioned and restarted, and
// so are managers. The history is linearizable without any loss: no acknowledged change is lost, or
// overwritten by an older tenure (I9).
func TestLinearizableOnPostgreSQL(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 2
	}
	server := realservice.StartPostgreSQL(t)
	found, unknown := 0, 0
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{Managers: 3}, func(t *testing.T, c *leaseholdtest.Cluster) {
				db, err := sql.Open("pgx", server.DSN) // in the bubble, whose clock stops during its calls
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				store := pgmap.Open(db, fmt.Sprint("registers_", seed))
				if err := store.Create(t.Context()); err != nil {
					t.Fatal(err)
				}
				history := live(t, c, seed, leasemap.Config[string]{Store: store})
				for _, o := range history {
					switch out := o.Output.(oracle.Answer); {
					case out.Unknown:
						unknown++
					case out.Value != "":
						found++
					}
				}
				if result := porcupine.CheckOperations(oracle.RegisterModel(), history); !result {
					t.Errorf("the history is not linearizable: %+v", history)
				}
			})
		})
	}
	t.Logf("%d histories: %d reads found a value, %d requests are indeterminate", seeds, found, unknown)
	if found < 10*seeds {
		t.Error("the history has too few operations")
	}
}
