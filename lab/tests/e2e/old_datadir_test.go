//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// TestOldDataDirectory: a manager is started on a copy of its directory that was made before it granted more. It
// finds out from an owner and a caller that run on, and goes on far above all that they have seen.
func TestOldDataDirectory(t *testing.T) {
	t.Parallel()
	const ns = "presence"
	g := startLone(t)
	m := g.managers[0]
	g.createNamespace(t, ns, 3*time.Second)
	ann := g.join(t, ns, "ann")
	g.settled(t, ns, "ann")
	m.terminate(t)
	old := m.dataDir + ".old"
	if err := os.CopyFS(old, os.DirFS(m.dataDir)); err != nil {
		t.Fatal(err)
	}
	m.start(t)
	bob := g.join(t, ns, "bob")
	g.settled(t, ns, "ann", "bob")
	l := g.open(t, ns, time.Minute)
	var newest leasehold.Generation
	for _, lease := range append(ann.Leases(), bob.Leases()...) {
		newest = max(newest, lease.Generation)
	}
	before := l.LSN()

	m.kill()
	if err := errors.Join(os.RemoveAll(m.dataDir), os.Rename(old, m.dataDir)); err != nil {
		t.Fatal(err)
	}
	m.start(t)
	const far = 1 << 39
	eventually(t, "the caller has a table from far above", func() error {
		if l.LSN() < before+far {
			return fmt.Errorf("it goes on from change %d at %d", before, l.LSN())
		}
		return nil
	})
	carl := g.join(t, ns, "carl")
	g.settled(t, ns, "ann", "bob", "carl")
	for _, lease := range carl.Leases() {
		if lease.Generation < newest+far {
			t.Errorf("carl has %v, and generation %d was given before", lease, newest)
		}
		eventually(t, "the caller follows", func() error {
			if at, _ := l.At(lease.Range.Start); at.Generation != lease.Generation {
				return fmt.Errorf("it has %+v, and carl %v", at, lease)
			}
			return nil
		})
	}
	log, err := os.ReadFile(m.log)
	if err != nil || !strings.Contains(string(log), "the store was restored from a backup.") {
		t.Errorf("the log does not say it (%v)", err)
	}
}
