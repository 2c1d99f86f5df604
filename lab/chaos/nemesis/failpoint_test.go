package nemesis

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
)

func TestArmed(t *testing.T) {
	for want, s := range map[string]Strike{
		"owner/before-send=kill:after=3":            {Pick: 22 << 32, How: 0.4},
		"owner/before-send=pause:for=500ms:after=0": {How: 0.75, For: time.Second},
		"owner/before-send=pause:for=2s:after=15":   {Pick: 19 << 32, How: 1, For: 2 * time.Second},
	} {
		if got := armed("owner/before-send", s); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestPoints: a process is only struck at failpoints that it passes.
func TestPoints(t *testing.T) {
	o := &cluster.Member{Role: cluster.Owner}
	n := &Nemesis{Cluster: &cluster.Cluster{Owners: []*cluster.Member{o}}}
	for _, points := range [][]string{nil, {"manager/committed-before-reply"}, {"agent/before-line"}} {
		n.Points = points
		if victims, _, err := fail(context.Background(), n, Strike{}); victims != "" || err != nil || !o.Claim() {
			t.Errorf("%v: %q, %v", points, victims, err)
		}
		o.Release()
	}
}

func TestPassed(t *testing.T) {
	all := []string{"agent/before-line", "memcatalog/tenure-over", "etcd/committed", "link/connected", "store/appended"}
	for shape, want := range map[cluster.Shape][]string{
		cluster.Etcd:     {"etcd/committed", "link/connected", "store/appended"},
		cluster.External: {"link/connected", "store/appended"},
		cluster.Flease:   {"memcatalog/tenure-over", "link/connected"},
	} {
		if got := Passed(all, shape); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", shape, got, want)
		}
	}
}
