package managerd

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/server/daemon"
)

// TestStoreMetrics: of the default registry only metrics of etcd are exported, without its
// debugging metrics.
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
		t.Error("no metrics of etcd")
	}
}
