package doctor

import (
	"context"
	"crypto/x509"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An exam is all that was found out. What to make of it is for [diagnose] to say.
type exam struct {
	managers []*managerExam
	members  []*leaseholdv1.Member // nil if managers do not keep the store themselves
	spaces   []*spaceExam
	tls      tlsExam
	failed   error // why the namespaces are not known
}

// A managerExam is what one manager said.
type managerExam struct {
	addr    string
	err     error // why it does not answer
	listens bool  // and yet somebody takes connections there
	status  *leaseholdv1.GetStatusResponse
	shown   *x509.Certificate // nil in plain text
	fastest time.Duration     // of its answers
	samples []clockSample

	health    error // why it is not healthy by HTTP
	unhealthy string
	lookups   map[string]*leaseholdv1.ListLookupsResponse // by namespace
}

// A spaceExam is a namespace at the beginning and at the end.
type spaceExam struct {
	config *leaseholdv1.NamespaceConfig
	looks  [2]spaceLook
}

type spaceLook struct {
	status *leaseholdv1.NamespaceStatus // nil if there is none
	owners []*leaseholdv1.OwnerStatus
	moves  []*leaseholdv1.MoveStatus
	err    error
}

const (
	// sampleEvery is how often clocks are read.
	sampleEvery = 250 * time.Millisecond
	mostSamples = 1000
	// mostSpaces bounds how many namespaces are looked at closely.
	mostSpaces = 100
)

// listens reports whether somebody takes connections at an address.
func listens(ctx context.Context, addr string, within time.Duration) bool {
	conn, err := (&net.Dialer{Timeout: within}).DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = conn.Close() // nothing was said
	}
	return err == nil
}

// lookupsOf returns the lookups that are connected to a manager, by namespace, as far as
// it is new enough to tell.
func lookupsOf(ctx context.Context, to cli.Service, s *leaseholdv1.GetStatusResponse) map[string]*leaseholdv1.ListLookupsResponse {
	out := make(map[string]*leaseholdv1.ListLookupsResponse)
	for _, n := range s.GetNamespaces()[:min(mostSpaces, len(s.GetNamespaces()))] {
		answer, err := to.ListLookups(ctx, &leaseholdv1.ListLookupsRequest{Version: wire.Version, Namespace: n.GetName()})
		if err != nil {
			break
		}
		out[n.GetName()] = answer
	}
	return out
}

// httpOf is where a manager answers us by HTTP that listens at an address: one that names
// no host is on that of the manager. It is "" if that is the loopback of another computer:
// on ours there is somebody else at the same address.
func httpOf(manager, addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	home, _, err := net.SplitHostPort(manager)
	switch {
	case err != nil || address.Loopback(addr) && !address.Loopback(manager):
		return ""
	case host == "":
		host = home
	}
	return net.JoinHostPort(host, port)
}

// look asks for everything about the namespaces. Those that come later are left for
// another time.
func (e *exam) look(ctx context.Context, to cli.Service, which int) error {
	status, err := to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
	if err != nil {
		return err
	}
	if which == 0 {
		answer, err := to.ListNamespaces(ctx, &leaseholdv1.ListNamespacesRequest{Version: wire.Version})
		if err != nil {
			return err
		}
		e.spaces = nil
		all := answer.GetNamespaces()
		for _, c := range all[:min(mostSpaces, len(all))] {
			e.spaces = append(e.spaces, &spaceExam{config: proto.CloneOf(c)})
		}
		if members, err := to.ListMembers(ctx, &leaseholdv1.ListMembersRequest{Version: wire.Version}); err == nil {
			e.members = members.GetMembers()
		}
	}
	for _, s := range e.spaces {
		s.looks[which] = lookAt(ctx, to, status, s.config.GetName())
	}
	return nil
}

func lookAt(ctx context.Context, to cli.Service, status *leaseholdv1.GetStatusResponse, name string) spaceLook {
	var l spaceLook
	for _, n := range status.GetNamespaces() {
		if n.GetName() == name {
			l.status = n
		}
	}
	if !l.status.GetReady() {
		return l
	}
	owners, err := to.ListOwners(ctx, &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: name})
	if err != nil {
		l.err = wire.ToError(err)
		return l
	}
	l.owners = owners.GetOwners()
	if moves, err := to.ListMoves(ctx, &leaseholdv1.ListMovesRequest{Version: wire.Version, Namespace: name}); err == nil {
		l.moves = moves.GetMoves()
	}
	return l
}

// pause waits, and reports whether to go on: not if the context has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
