package leasemap

import "github.com/leasehold-dev/leasehold"

// A refusal is why an operation was refused, and for which key. Whoever tells a caller of
// it over a network says the key, so that one who has routed by another finds out at once,
// and does not look for a server that has it.
type refusal struct {
	name string
	key  leasehold.Key
	why  string
}

func (r *refusal) Error() string { return r.why }

// RefusedKey returns the name that was asked for, and its key. Packages leasehttp and
// leasegrpc look for this method.
func (r *refusal) RefusedKey() (name string, key leasehold.Key) { return r.name, r.key }

const (
	elsewhere  = "another server has it, or nobody does"
	leaseEnded = "the lease ended meanwhile"
	suspended  = "nothing was done: no manager has renewed the lease in time, and the value is kept until one answers"
)

// refuse returns why an operation is refused that has done nothing: the lease on the name
// is suspended, or this server has none.
func (m *Map[V]) refuse(op, name string, key leasehold.Key, why string) error {
	kind := leasehold.ErrNotOwner
	if m.leases.Suspended(key) {
		kind, why = leasehold.ErrSuspended, suspended
	}
	return &leasehold.Error{Op: op, Kind: kind, Subject: name, Err: &refusal{name, key, why}}
}
