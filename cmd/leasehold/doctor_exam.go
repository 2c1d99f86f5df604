package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/hostport"
	"github.com/leasehold-dev/leasehold/internal/wire"
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

// examine asks all managers at once, and watches them for a while.
func (o *doctorOptions) examine(ctx context.Context) *exam {
	e := &exam{tls: o.examineTLS()}
	var asking sync.WaitGroup
	for _, addr := range o.managers {
		m := &managerExam{addr: addr}
		e.managers = append(e.managers, m)
		asking.Go(func() { o.visit(ctx, m) })
	}
	asking.Go(func() { e.failed = o.tour(ctx, e) })
	asking.Wait()
	return e
}

// visit asks one manager for as long as the exam lasts.
func (o *doctorOptions) visit(ctx context.Context, m *managerExam) {
	m.err = o.askOne(ctx, m.addr, func(ctx context.Context, to service) error {
		end := time.Now().Add(o.lasting)
		for len(m.samples) < mostSamples {
			if err := o.sample(ctx, to, m); err != nil {
				return err
			}
			if !time.Now().Before(end) || !pause(ctx, min(sampleEvery, time.Until(end)+time.Millisecond)) {
				break
			}
		}
		m.lookups = lookupsOf(ctx, to, m.status)
		return nil
	})
	if m.err != nil {
		m.listens = listens(ctx, m.addr, o.timeout)
	}
	if at := httpOf(m.addr, m.status.GetHttp()); m.err == nil && at != "" {
		m.unhealthy, m.health = o.askReady(ctx, at)
	}
}

// askOne calls f with the service of one manager, for as long as the exam lasts.
func (o *doctorOptions) askOne(ctx context.Context, addr string, f func(context.Context, service) error) error {
	one, err := admin.New(admin.Config{
		Managers: []string{addr}, Timeout: o.timeout + o.lasting, Credentials: o.security.dialling(o.keeper), Token: o.security.perRPC(),
	})
	if err != nil {
		return err
	}
	defer one.Close() //nolint:errcheck // nothing is in flight
	err = one.Do(ctx, f)
	var unreachable *admin.UnreachableError
	if errors.As(err, &unreachable) {
		return leasehold.Errorf("", leasehold.ErrUnavailable, "", "%s", strings.TrimPrefix(unreachable.Reasons[0], addr+": "))
	}
	return err
}

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
func lookupsOf(ctx context.Context, to service, s *leaseholdv1.GetStatusResponse) map[string]*leaseholdv1.ListLookupsResponse {
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

// sample asks a manager for its status, with its clocks.
func (o *doctorOptions) sample(ctx context.Context, to service, m *managerExam) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	before := time.Now()
	var from peer.Peer
	status, err := to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version}, grpc.Peer(&from))
	after := time.Now()
	switch {
	case err != nil && ctx.Err() != nil:
		return leasehold.Errorf("", leasehold.ErrUnavailable, "", "no answer within %v", o.timeout)
	case err != nil:
		return err
	}
	if took := after.Sub(before); m.status == nil || took < m.fastest {
		m.fastest = took
	}
	if c := status.GetClocks(); c != nil {
		m.samples = append(m.samples, clockSample{before: before, after: after, wall: c.GetWall().AsTime(), monotonic: time.Duration(c.GetMonotonic())})
	}
	m.status, m.shown = status, shownBy(&from)
	return nil
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
	case err != nil || hostport.Loopback(addr) && !hostport.Loopback(manager):
		return ""
	case host == "":
		host = home
	}
	return net.JoinHostPort(host, port)
}

// askReady asks by HTTP whether a manager is ready, and returns why not.
func (o *doctorOptions) askReady(ctx context.Context, addr string) (why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	transport, scheme := &http.Transport{DisableKeepAlives: true}, "http://"
	if o.keeper != nil {
		transport.DialTLSContext, scheme = o.keeper.DialTLS, "https://"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+addr+"/readyz", nil)
	if err != nil {
		return "", err
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	const most = 1000
	text, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if answer.StatusCode != http.StatusOK {
		return fmt.Sprintf("%s: %s", answer.Status, text), err
	}
	return "", err
}

// tour looks at all namespaces at the beginning and at the end.
func (o *doctorOptions) tour(ctx context.Context, e *exam) error {
	look := func(i int) error {
		return o.ask(ctx, func(ctx context.Context, to service) error { return e.look(ctx, to, i) })
	}
	if err := look(0); err != nil {
		return err
	}
	timer := time.NewTimer(o.lasting)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return look(1)
	}
}

// look asks for everything about the namespaces. Those that come later are left for
// another time.
func (e *exam) look(ctx context.Context, to service, which int) error {
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

func lookAt(ctx context.Context, to service, status *leaseholdv1.GetStatusResponse, name string) spaceLook {
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
