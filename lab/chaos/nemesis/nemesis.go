package nemesis

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
)

// A Nemesis hurts a cluster. Its storms come one after the other.
type Nemesis struct {
	Cluster *cluster.Cluster
	Network *lan.Network
	Points  []string      // the failpoints of its processes
	CopyAge time.Duration // see [Times.CopyAge]
	// Tell is told of each strike, when it begins and when it is healed. It may be
	// called from several goroutines at once.
	Tell func(Deed)
}

// A Deed is what has been done.
type Deed struct {
	Strike
	Victims string `json:"victims"` // empty: there was nobody to whom it could be done
	Healed  bool   `json:"healed,omitempty"`
}

// Storm strikes as planned, and returns when everything is healed, sooner if the
// context ends.
func (n *Nemesis) Storm(ctx context.Context, plan []Strike) error {
	var all sync.WaitGroup
	failed := make(chan error, len(plan))
	byName := make(map[string]kind)
	for _, k := range every() {
		byName[k.name] = k
	}
	for _, s := range plan {
		k, ok := byName[s.Kind]
		if !ok {
			return fmt.Errorf("there is no fault %q", s.Kind)
		}
		all.Go(func() {
			if err := n.strike(ctx, k.do, s); err != nil {
				failed <- fmt.Errorf("%s: %w", s.Kind, err)
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// strike waits for its time, strikes, and heals.
func (n *Nemesis) strike(ctx context.Context, do deed, s Strike) error {
	if !wait(ctx, s.At) {
		return nil
	}
	victims, heal, err := do(ctx, n, s)
	if err != nil {
		return err
	}
	n.Tell(Deed{Strike: s, Victims: victims})
	if victims == "" {
		return nil
	}
	wait(ctx, s.For)
	err = heal()
	n.Tell(Deed{Strike: s, Victims: victims, Healed: true})
	return err
}

// single has a strike befall nobody while another of its kind lasts, in one storm. If one leader after the other
// were cut off nobody could lead, and nothing would be shown.
func single(do deed) deed {
	var lasts atomic.Bool
	return func(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
		if !lasts.CompareAndSwap(false, true) {
			return "", nil, nil
		}
		victims, heal, err := do(ctx, n, s)
		if victims == "" || err != nil {
			lasts.Store(false)
			return victims, heal, err
		}
		return victims, func() error {
			defer lasts.Store(false)
			return heal()
		}, nil
	}
}

// wait waits, and reports whether to go on.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
