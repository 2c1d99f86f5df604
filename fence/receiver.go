package fence

import (
	"maps"

	"github.com/leasehold-dev/leasehold"
)

// A Receiver refuses late effects on a service whose callers are owners in another namespace: requests of an owner that was
// paused, or delayed ones, that arrive after those of a later owner. It contains the highest generation of each sender, the
// name for which the caller holds a lease. The nil Receiver has accepted nothing.
//
// It is a value, which is never changed in place: keep it with the state that the effects change, under the same lock or in
// the same value of a leasemap, with which it then moves and is saved. It is encoded as a JSON object. Generations of two
// namespaces are not comparable: if callers are in several, the sender contains the namespace. A sender may be deleted when
// no process can have a lease of an earlier generation.
type Receiver map[string]leasehold.Generation

// Accept returns a Receiver that has accepted an effect of a sender. The error is of the kind [leasehold.ErrStale] if it has
// accepted one of a later generation: then the service must change nothing. It copies the Receiver if the generation is new, and otherwise
// costs a map access.
func (r Receiver) Accept(sender string, g leasehold.Generation) (Receiver, error) {
	const op = "accept effect"
	switch last := r[sender]; {
	case g == 0:
		return r, leasehold.Errorf(op, leasehold.ErrInvalid, sender, "nothing was done: the effect has no generation")
	case g < last:
		return r, leasehold.Errorf(op, leasehold.ErrStale, sender, "nothing was done: generation %d is older than %d", g, last)
	case g == last:
		return r, nil
	}
	next := make(Receiver, len(r)+1)
	maps.Copy(next, r)
	next[sender] = g
	return next, nil
}
