package memcatalog

import (
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/memcatalog"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/catalogwire"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
)

// fromRequest encodes a request of the leader.
func fromRequest(group uint64, from storage.ManagerID, r *machine.Request) *storagev1.ShareRequest {
	out := &storagev1.ShareRequest{
		Version: wire.Version, Group: group, From: string(from), Term: uint64(r.Term), Seq: r.Seq, Full: r.Full, To: r.To,
	}
	if r.Catalog != nil {
		out.Catalog, out.CatalogVersion = catalogwire.FromCatalog(r.Catalog), uint64(r.Catalog.Version)
	}
	return out
}

// toRequest decodes a request of the leader and its sender. It does not check the version, see
// [wire.CheckVersion], nor the group.
func toRequest(m *storagev1.ShareRequest) (storage.ManagerID, *machine.Request, error) {
	from := storage.ManagerID(m.GetFrom())
	out := &machine.Request{Term: leasehold.Term(m.GetTerm()), Seq: m.GetSeq(), Full: m.GetFull(), To: m.GetTo()}
	if from == "" || len(from) > leasehold.MaxOwnerIDLen || out.Seq == 0 || out.Term == 0 || out.Term > protocol.MaxTerm {
		return "", nil, leasehold.Errorf(opShare, leasehold.ErrInvalid, string(from), "invalid request: sequence number %d, term %d", out.Seq, out.Term)
	}
	if m.GetCatalog() == nil {
		return from, out, nil
	}
	var err error
	out.Catalog, err = toSharedCatalog(m.GetCatalog(), m.GetCatalogVersion(), m.GetTerm())
	return from, out, err
}

// fromResponse encodes a manager's reply.
func fromResponse(r *machine.Response) *storagev1.ShareResponse {
	out := &storagev1.ShareResponse{
		Version: wire.Version, Process: r.Process, Term: uint64(r.Term), Seq: r.Seq,
		Known: r.Known, CatalogVersion: uint64(r.At), CatalogTerm: uint64(r.Wrote),
	}
	if r.Catalog != nil {
		out.Catalog = catalogwire.FromCatalog(r.Catalog)
	}
	return out
}

// toResponse decodes a manager's reply.
func toResponse(m *storagev1.ShareResponse) (*machine.Response, error) {
	out := &machine.Response{
		Process: m.GetProcess(), Term: leasehold.Term(m.GetTerm()), Seq: m.GetSeq(),
		Known: m.GetKnown(), At: storage.Version(m.GetCatalogVersion()), Wrote: leasehold.Term(m.GetCatalogTerm()),
	}
	if out.Term > protocol.MaxTerm || out.Wrote > out.Term || !out.Known && m.GetCatalog() != nil {
		return nil, leasehold.Errorf(opShare, leasehold.ErrInvalid, "", "invalid reply: catalog of term %d, known: %v, in term %d", out.Wrote, out.Known, out.Term)
	}
	if m.GetCatalog() == nil {
		return out, nil
	}
	var err error
	out.Catalog, err = toSharedCatalog(m.GetCatalog(), m.GetCatalogVersion(), m.GetCatalogTerm())
	return out, err
}

// toSharedCatalog decodes another manager's catalog, and checks that it is within the limits and
// sorted by name, as [storage.Catalog] requires.
func toSharedCatalog(m *storagev1.Catalog, version, term uint64) (*storage.Catalog, error) {
	if n := len(m.GetNamespaces()); n > storage.MaxNamespaces {
		return nil, leasehold.Errorf(opShare, leasehold.ErrLimit, "", "%d namespaces, at most %d are allowed", n, storage.MaxNamespaces)
	}
	c := catalogwire.ToCatalog(m)
	c.Version, c.Term = storage.Version(version), leasehold.Term(term)
	for i := range c.Namespaces {
		if err := c.Namespaces[i].Name.Validate(); err != nil {
			return nil, err
		}
	}
	rising := slices.IsSortedFunc(c.Namespaces, func(a, b storage.Namespace) int { return strings.Compare(string(a.Name), string(b.Name)) })
	twice := slices.CompactFunc(slices.Clone(c.Namespaces), func(a, b storage.Namespace) bool { return a.Name == b.Name })
	if version == 0 || term == 0 || !rising || len(twice) != len(c.Namespaces) {
		return nil, leasehold.Errorf(opShare, leasehold.ErrInvalid, "", "catalog of version %d, term %d: want both above 0, and unique names in ascending order", version, term)
	}
	return c, nil
}
