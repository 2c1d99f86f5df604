package wire

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// FromHolder encodes a holder, nil as nil, without its death hash. The result shares h's session.
func FromHolder(h *table.Holder) *leaseholdv1.Holder {
	if h == nil {
		return nil
	}
	return &leaseholdv1.Holder{
		Owner:   string(h.Owner),
		Session: h.Session[:],
		Addr:    h.Addr,
		Weight:  h.Weight,
		Process: h.Process,
	}
}

// fromHolderWithHash encodes a holder with its death hash, for the leader and its store.
func fromHolderWithHash(h *table.Holder) *leaseholdv1.Holder {
	out := FromHolder(h)
	if out != nil && !h.DeathHash.IsZero() {
		out.DeathHash = h.DeathHash[:]
	}
	return out
}

// ToHolder decodes a holder. nil is an error.
func ToHolder(h *leaseholdv1.Holder) (*table.Holder, error) {
	if h == nil {
		return nil, leasehold.Errorf("read holder", leasehold.ErrInvalid, "", "it is missing")
	}
	var err error
	out := &table.Holder{
		Owner:   leasehold.OwnerID(h.GetOwner()),
		Session: get(&err, h.GetSession(), toSession),
		Addr:    h.GetAddr(),
		Weight:  h.GetWeight(),
		Process: h.GetProcess(),

		DeathHash: get(&err, h.GetDeathHash(), toDeathHash),
	}
	if err != nil {
		return nil, err
	}
	return checked(out, protocol.ValidateHolder(out))
}

func toOptionalHolder(h *leaseholdv1.Holder) (*table.Holder, error) {
	if h == nil {
		return nil, nil
	}
	return ToHolder(h)
}

func toSession(b []byte) (leasehold.Session, error) {
	return toID[leasehold.Session]("read session", b)
}

func toDeathHash(b []byte) (h table.DeathHash, err error) {
	if len(b) != 0 && len(b) != len(h) {
		return h, leasehold.Errorf("read death hash", leasehold.ErrInvalid, "", "it has %d bytes, want %d", len(b), len(h))
	}
	copy(h[:], b)
	return h, nil
}

// A holderList has the holders of a message without duplicates. It compares them by value: the table of a
// new leader may have two pointers for one session.
type holderList struct {
	list    []*leaseholdv1.Holder
	byPlace map[*table.Holder]uint32 // fast path for most holders
	byValue map[table.Holder]uint32
}

func newHolderList() *holderList {
	return &holderList{byPlace: make(map[*table.Holder]uint32), byValue: make(map[table.Holder]uint32)}
}

// index returns the index of h, after appending it if it is new.
func (l *holderList) index(h *table.Holder) uint32 {
	if i, ok := l.byPlace[h]; ok {
		return i
	}
	i, ok := l.byValue[*h]
	if !ok {
		i = uint32(len(l.list))
		l.list = append(l.list, fromHolderWithHash(h))
		l.byValue[*h] = i
	}
	l.byPlace[h] = i
	return i
}

// toHolders decodes the holders of a message. Equal ones become one pointer. Different holders may have the
// same session: a session that changes its fields violates the protocol, but must not make the table
// undecodable for all other processes.
func toHolders(list []*leaseholdv1.Holder) ([]*table.Holder, error) {
	out := make([]*table.Holder, len(list))
	seen := make(map[table.Holder]*table.Holder, len(list))
	for i := range list {
		h, err := ToHolder(list[i])
		if err != nil {
			return nil, err
		}
		if first, ok := seen[*h]; ok {
			h = first
		}
		seen[*h] = h
		out[i] = h
	}
	return out, nil
}
