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

// TestOldDataDirectory: a manager is started on an older copy of its data directory. It
// detects this from an owner and a lookup that are still running, and continues with LSNs and
// generations far above all that they have seen.
func TestOldDataDirectory(t *testing.T) {
	t.Parallel()
	const ns = "presence"
	g := startLone(t)
	m := g.managers[0]
	g.createNamespace(t, ns, 3*time.Second)
	ann := g.join(t, ns, "ann")
	g.waitForAssignment(t, ns, "ann")
	m.terminate(t)
	old := m.dataDir + ".old"
	if err := os.CopyFS(old, os.DirFS(m.dataDir)); err != nil {
		t.Fatal(err)
	}
	m.start(t)
	bob := g.join(t, ns, "bob")
	g.waitForAssignment(t, ns, "ann", "bob")
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
	eventually(t, "the lookup has a table with a far higher LSN", func() error {
		if l.LSN() < before+far {
			return fmt.Errorf("LSN %d before, %d now", before, l.LSN())
		}
		return nil
	})
	carl := g.join(t, ns, "carl")
	g.waitForAssignment(t, ns, "ann", "bob", "carl")
	for _, lease := range carl.Leases() {
		if lease.Generation < newest+far {
			t.Errorf("carl holds %v, generation %d was granted before", lease, newest)
		}
		eventually(t, "the lookup follows", func() error {
			if at, _ := l.At(lease.Range.Start); at.Generation != lease.Generation {
				return fmt.Errorf("the lookup has %+v, carl %v", at, lease)
			}
			return nil
		})
	}
	log, err := os.ReadFile(m.log)
	if err != nil || !strings.Contains(string(log), "the store was restored from a backup.") {
		t.Errorf("the restored store is not logged (%v)", err)
	}
}
