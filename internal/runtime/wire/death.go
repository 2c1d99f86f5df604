package wire

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// FromDeathNotice encodes a death notice.
func FromDeathNotice(n *protocol.DeathNotice) *leaseholdv1.ReportDeathRequest {
	return &leaseholdv1.ReportDeathRequest{
		Version:   Version,
		Namespace: string(n.Namespace),
		Owner:     string(n.Owner),
		Session:   n.Session[:],
		Token:     n.Token[:],
	}
}

// ToDeathNotice decodes a death notice. It does not check the version: see [CheckVersion].
func ToDeathNotice(r *leaseholdv1.ReportDeathRequest) (*protocol.DeathNotice, error) {
	session, err := toSession(r.GetSession())
	out := &protocol.DeathNotice{
		Namespace: leasehold.Namespace(r.GetNamespace()),
		Owner:     leasehold.OwnerID(r.GetOwner()),
		Session:   session,
		Token:     get(&err, r.GetToken(), toToken),
	}
	if err != nil {
		return nil, err
	}
	return checked(out, out.Validate())
}

func toToken(b []byte) (t table.DeathToken, err error) {
	if len(b) != len(t) {
		return t, leasehold.Errorf("read death token", leasehold.ErrInvalid, "", "it has %d bytes, want %d", len(b), len(t))
	}
	copy(t[:], b)
	return t, nil
}
