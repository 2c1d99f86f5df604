package explore

import (
	"encoding/binary"
	"math/rand/v2"
	"reflect"

	"github.com/cespare/xxhash/v2"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/lab/sim/explore/image"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// digests are the hashes of a description, one for each swap.
type digests [len(swaps)]uint64

// rules are the rules for all machines.
var rules = image.Rules{
	Shared: []reflect.Type{
		reflect.TypeFor[*table.Holder](), reflect.TypeFor[*owner.View](), reflect.TypeFor[*storage.Batch](),
		reflect.TypeFor[*storage.Catalog](), reflect.TypeFor[*rand.Rand](),
		reflect.TypeFor[[]leasehold.Lease](), reflect.TypeFor[[]table.Change](),
		reflect.TypeFor[manager.Config](), reflect.TypeFor[managerproc.Config](), reflect.TypeFor[owner.Config](), reflect.TypeFor[byrecord.Config](), reflect.TypeFor[lookup.Config](),
	},
	Scratch: []string{"[]manager.Action", "[]managerproc.Action", "[]owner.Action", "[]byrecord.Action", "[]lookup.Action"},
	// The configuration of a process is constant. Reasons are only displayed, and the change log is a part of the
	// history in the store.
	Ignored: []string{
		"manager.Config", "managerproc.Config", "owner.Config", "byrecord.Config", "lookup.Config", "*rand.Rand", "*storage.Catalog",
		"table.Reason", "*keyrange.Map[github.com/leasehold-dev/leasehold/internal/core/table.Reason]",
	},
	IgnoredFields: []string{"block.own", "Machine.snapshot", "Machine.unsaved", "Holder.Addr", "Holder.Process", "Holder.Weight"},
	Sorted:        map[string]string{"[]*manager.seat": "owner"},
	Names:         []reflect.Type{reflect.TypeFor[leasehold.OwnerID](), reflect.TypeFor[leasehold.Session](), reflect.TypeFor[storage.ManagerID]()},
}

// A kit copies and describes the parts of a state.
type kit struct {
	image      *image.Kit
	symmetries []int // indices of the swaps for which there is a description
	names      [len(swaps)]image.Names
	scratch    []byte
}

func newKit(s *Scenario) *kit {
	k := &kit{image: image.NewKit(rules), symmetries: s.symmetries()}
	for i, sw := range swaps {
		k.names[i] = sw.rename
	}
	return k
}

// rename appends the name of an owner, a manager or a session after the swap.
func (s swap) rename(b, name []byte) []byte {
	from := len(b)
	b = append(b, name...)
	switch n := b[from:]; {
	case len(n) == len(leasehold.Session{}) && n[0] != 0:
		n[1] = byte(s.at(int(n[1])))
	case len(n) == 2 && s.managers: // m0, m1
		n[1] ^= 1
	case len(n) == 1 && s.owners: // a, b
		n[0] ^= 'a' ^ 'b'
	}
	return b
}

func (k *kit) digest(into *digests, describe func(b []byte, sw swap, names image.Names) []byte) {
	for _, i := range k.symmetries {
		k.scratch = describe(k.scratch[:0], swaps[i], k.names[i])
		into[i] = xxhash.Sum64(k.scratch)
	}
}

func (k *kit) digestProcess(p *process) {
	k.digest(&p.digests, func(b []byte, _ swap, names image.Names) []byte {
		b = append(b, p.epoch, flag(p.paused), p.followers)
		switch {
		case p.node != nil:
			return image.Append(k.image, b, p.node, names)
		case p.lookup != nil:
			return image.Append(k.image, b, p.lookup, names)
		}
		b = image.Append(k.image, b, &p.ended, names)
		b = image.Append(k.image, b, &p.installed, names)
		return image.Append(k.image, b, p.owner, names)
	})
}

func (k *kit) digestMessage(l *message) {
	k.digest(&l.digests, func(b []byte, sw swap, names image.Names) []byte {
		b = append(b, byte(sw.at(l.to)), l.epoch, flag(l.reordered), flag(l.timedOut))
		return image.Append(k.image, b, &l.what, names)
	})
}

func (k *kit) digestStore(s *store) {
	k.digest(&s.digests, func(b []byte, _ swap, names image.Names) []byte {
		b = image.Append(k.image, b, &s.record, names)
		return image.Append(k.image, b, &s.changes, names)
	})
}

func flag(f bool) byte {
	if f {
		return 1
	}
	return 0
}

// Hash returns the hash of a state: the same for symmetric states.
func (st *state) Hash() uint64 {
	least := uint64(1<<64 - 1)
	for _, i := range st.kit.symmetries {
		least = min(least, st.hashAs(i))
	}
	return least
}

// hashAs returns the hash under a swap. Reordered messages are an unordered set.
func (st *state) hashAs(i int) uint64 {
	var room [256]byte
	b := binary.LittleEndian.AppendUint64(room[:0], uint64(st.now))
	b = binary.LittleEndian.AppendUint64(b, st.store.digests[i])
	for slot := range st.scenario.size() {
		p := st.procs[swaps[i].at(slot)]
		b = binary.LittleEndian.AppendUint64(b, p.digests[i])
	}
	var reordered uint64
	ordered := st.scenario.Detours != explorer.Unlimited
	for _, l := range st.messages {
		if d := l.digests[i]; l.reordered || !ordered {
			reordered += d * (d | 1)
		} else {
			b = binary.LittleEndian.AppendUint64(b, d)
		}
	}
	b = binary.LittleEndian.AppendUint64(b, reordered)
	return xxhash.Sum64(b)
}

// Budget returns the remaining faults, as a number.
func (st *state) Budget() uint64 {
	return uint64(uint8(st.detours)) | uint64(uint8(st.crashes))<<8 | uint64(uint8(st.duplicates))<<16 | uint64(uint8(st.pauses))<<24
}
