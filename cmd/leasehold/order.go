package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Orders may be given twice: the second changes nothing. So they are asked for
// like questions, of one manager after the other.

// orderOptions are the flags of commands that move keys.
type orderOptions struct {
	dryRun    bool
	loseState bool
	noWait    bool
	within    time.Duration
}

func addOrderFlags(cmd *cobra.Command) *orderOptions {
	o := &orderOptions{}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only say what would move where")
	cmd.Flags().BoolVar(&o.loseState, "lose-state", false, "go on although state is lost")
	return o
}

// canWait adds the flags of commands that wait until it is done.
func (o *orderOptions) canWait(cmd *cobra.Command) *orderOptions {
	cmd.Flags().BoolVar(&o.noWait, "no-wait", false, "do not wait until it is done")
	cmd.Flags().DurationVar(&o.within, "within", 0, "how long to wait until it is done (default as long as it takes)")
	cmd.MarkFlagsMutuallyExclusive("no-wait", "within")
	cmd.MarkFlagsMutuallyExclusive("no-wait", "dry-run")
	return o
}

func (o *orderOptions) validate() error {
	if o.within < 0 {
		return fmt.Errorf("--within %v: want a time above 0", o.within)
	}
	return nil
}

// listOwners returns everyone the leader knows.
func (c *client) listOwners(ctx context.Context, to admin) ([]*leaseholdv1.OwnerStatus, error) {
	answer, err := to.ListOwners(ctx, &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: c.namespace})
	return answer.GetOwners(), err
}

// ownerNamed returns who has a name: the session that takes part, if there are
// several. The nil owner is nobody.
func ownerNamed(owners []*leaseholdv1.OwnerStatus, name string) *leaseholdv1.OwnerStatus {
	var found *leaseholdv1.OwnerStatus
	for _, o := range owners {
		if o.GetHolder().GetOwner() == name && (found == nil || o.GetState() == leaseholdv1.OwnerState_OWNER_STATE_MEMBER) {
			found = o
		}
	}
	return found
}

// knownOwner returns who has a name, or says which names are most like it.
func (c *client) knownOwner(owners []*leaseholdv1.OwnerStatus, name string) (*leaseholdv1.OwnerStatus, error) {
	if found := ownerNamed(owners, name); found != nil {
		return found, nil
	}
	if len(owners) == 0 {
		return nil, leasehold.Errorf("", leasehold.NotFound, name, "nobody has joined %s", c.namespace)
	}
	var names []string
	for _, o := range owners {
		names = append(names, shown(o.GetHolder().GetOwner()))
	}
	const most = 3 // to propose
	near := settings.Nearest(name, names, most)
	if len(near) == 0 {
		return nil, leasehold.Errorf("", leasehold.NotFound, name, "no owner in %s has this name; 'leasehold owners -n %s' lists those there are", c.namespace, c.namespace)
	}
	return nil, leasehold.Errorf("", leasehold.NotFound, name, "no owner in %s has this name; the closest: %s", c.namespace, strings.Join(near, ", "))
}

// longestPatience is for how long the leader may have to wait for an owner that
// says nothing.
func longestPatience(owners []*leaseholdv1.OwnerStatus) (longest time.Duration) {
	for _, o := range owners {
		longest = max(longest, time.Duration(o.GetPatience()))
	}
	return longest
}

// othersTake reports whether somebody else takes part, and can be given the keys
// of an owner.
func othersTake(owners []*leaseholdv1.OwnerStatus, name string) bool {
	return slices.ContainsFunc(owners, func(o *leaseholdv1.OwnerStatus) bool {
		takesPart := o.GetState() == leaseholdv1.OwnerState_OWNER_STATE_MEMBER || o.GetState() == leaseholdv1.OwnerState_OWNER_STATE_SILENT
		return takesPart && o.GetHolder().GetOwner() != name && !o.GetDraining() && !o.GetParting()
	})
}

// whyRefused says who is to blame for a refusal, if that was for state that would
// be lost. The leader works out what an order moves while it does nothing else:
// so it is asked for that a second time only if it has refused.
func whyRefused(refusal error, what string, owners []*leaseholdv1.OwnerStatus, preview func() (*leaseholdv1.Plan, error)) error {
	if leasehold.KindOf(wire.ToError(refusal)) != leasehold.Invalid {
		return refusal
	}
	plan, err := preview()
	if err != nil {
		return refusal
	}
	if loss := planJSON(plan).lossy(what, owners); loss != nil {
		return loss
	}
	return refusal
}

// A sentTally adds up what moves have sent, for as long as somebody looks: what came
// and went between two looks is not in it.
type sentTally struct{ sent map[string]uint64 }

// add takes in the moves that are wanted and returns how many there are, begun or
// not, and what has been sent so far.
func (t *sentTally) add(moves []*leaseholdv1.MoveStatus, wanted func(*leaseholdv1.MoveStatus) bool) (count int, sent uint64) {
	if t.sent == nil {
		t.sent = make(map[string]uint64)
	}
	for _, m := range moves {
		if !wanted(m) {
			continue
		}
		count++
		if m.GetId() != "" {
			t.sent[m.GetId()] = max(t.sent[m.GetId()], m.GetBytes())
		}
	}
	for _, bytes := range t.sent {
		sent += bytes
	}
	return count, sent
}

// byteText writes a number of bytes for people.
func byteText(n uint64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value := float64(n)
	unit := ""
	for _, unit = range units {
		if value /= 1024; value < 1000 {
			break
		}
	}
	return fmt.Sprintf("%.3g %s", value, unit)
}
