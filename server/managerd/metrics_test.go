package managerd

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/server/daemon"
)

// TestStoreMetrics: of the registry of the whole process only the store's are taken, and
// none that only its developers understand.
func TestStoreMetrics(t *testing.T) {
	families, err := daemon.WithStore(daemon.NewRegistry()).Gather()
	if err != nil {
		t.Fatal(err)
	}
	etcd := 0
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "etcd_") {
			etcd++
		}
		if strings.HasPrefix(f.GetName(), "etcd_debugging_") {
			t.Errorf("%s is exported", f.GetName())
		}
	}
	if etcd == 0 {
		t.Error("there is nothing of etcd")
	}
}
