// Package nemesis injects faults into a cluster: it kills and stops processes, and disturbs the network.
// Faults come in storms. A [Plan] draws the strikes of a storm from a seed: the kind, the time, the duration,
// and the victim; the leader is determined at the time of the strike. Strikes overlap, but one member has
// only one fault of its process at a time. At the end of a storm all processes run and the network is healed.
package nemesis

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A Nemesis injects faults into a cluster, one storm after the other.
type Nemesis struct {
	Cluster *cluster.Cluster
	Network *lan.Network
	Points  []string      // failpoints of the processes
	CopyAge time.Duration // see [Times.CopyAge]
	// Notify is called when a strike begins and when it is healed, concurrently.
	Notify func(Deed)
}

// A Deed is an executed strike.
type Deed struct {
	Strike
	Victims string `json:"victims"` // empty: there was no possible victim
	Healed  bool   `json:"healed,omitempty"`
}

// Storm executes a plan, and returns when everything is healed, early if the context ends.
func (n *Nemesis) Storm(ctx context.Context, plan []Strike) error {
	var all errgroup.Group
	known := every() // created once: a kind may have state
	for _, s := range plan {
		all.Go(func() error {
			i := slices.IndexFunc(known, func(k kind) bool { return k.name == s.Kind })
			if i < 0 {
				return fmt.Errorf("unknown fault %q", s.Kind)
			}
			if err := n.strike(ctx, known[i].do, s); err != nil {
				return fmt.Errorf("%s: %w", s.Kind, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// strike waits for its time, injects the fault, and heals it.
func (n *Nemesis) strike(ctx context.Context, do deed, s Strike) error {
	if !proc.Pause(ctx, s.At) {
		return nil
	}
	victims, heal, err := do(ctx, n, s)
	if err != nil {
		return err
	}
	n.Notify(Deed{Strike: s, Victims: victims})
	if victims == "" {
		return nil
	}
	proc.Pause(ctx, s.For)
	err = heal()
	n.Notify(Deed{Strike: s, Victims: victims, Healed: true})
	return err
}

// single skips a strike while another of its kind lasts, in one storm. If one leader after the other were cut
// off, no manager could lead, and the test would show nothing.
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

// until starts a function that runs until the strike is healed.
func until(ctx context.Context, run func(context.Context) error) (heal func() error) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func() error {
		stop()
		return <-ended
	}
}
