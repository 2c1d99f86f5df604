// Package doctor examines a running cluster, managers, clocks, certificates, namespaces, owners and
// lookups, and says what to fix.
package doctor

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

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

// examine asks all managers at once, and watches them for a while.
func (o *options) examine(ctx context.Context) *exam {
	e := &exam{tls: o.examineTLS()}
	var asking sync.WaitGroup
	for _, addr := range o.Managers {
		m := &managerExam{addr: addr}
		e.managers = append(e.managers, m)
		asking.Go(func() { o.visit(ctx, m) })
	}
	asking.Go(func() { e.failed = o.tour(ctx, e) })
	asking.Wait()
	return e
}

func (o *options) visit(ctx context.Context, m *managerExam) {
	one, err := admin.New(admin.Config{
		Managers: []string{m.addr}, Timeout: o.Timeout + o.lasting, Credentials: o.Security.Dialling(o.Keeper), Token: o.Security.PerRPC(),
	})
	if err != nil {
		m.err = err
		return
	}
	defer one.Close() //nolint:errcheck // nothing is in flight
	m.err = one.Do(ctx, func(ctx context.Context, to cli.Service) error { return o.observe(ctx, to, m) })
	var unreachable *admin.UnreachableError
	if errors.As(m.err, &unreachable) {
		m.err = leasehold.Errorf("", leasehold.ErrUnavailable, "", "%s", strings.TrimPrefix(unreachable.Reasons[0], m.addr+": "))
	}
	if m.err != nil {
		m.listens = listens(ctx, m.addr, o.Timeout)
		return
	}
	m.lookups = lookupsOf(ctx, one, m.status)
	if at := httpOf(m.addr, m.status.GetHttp()); at != "" {
		m.unhealthy, m.health = o.askReady(ctx, at)
	}
}

// observe samples a manager for as long as the exam lasts.
func (o *options) observe(ctx context.Context, to cli.Service, m *managerExam) error {
	end := time.Now().Add(o.lasting)
	for len(m.samples) < mostSamples {
		if err := o.sample(ctx, to, m); err != nil {
			return err
		}
		if !time.Now().Before(end) || !cli.Pause(ctx, min(sampleEvery, time.Until(end)+time.Millisecond)) {
			break
		}
	}
	return nil
}

func (o *options) sample(ctx context.Context, to cli.Service, m *managerExam) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	before := time.Now()
	var from peer.Peer
	status, err := to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version}, grpc.Peer(&from))
	after := time.Now()
	switch {
	case err != nil && ctx.Err() != nil:
		return leasehold.Errorf("", leasehold.ErrUnavailable, "", "no answer within %v", o.Timeout)
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

func (o *options) askReady(ctx context.Context, addr string) (why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	transport, scheme := &http.Transport{DisableKeepAlives: true}, "http://"
	if o.Keeper != nil {
		transport.DialTLSContext, scheme = o.Keeper.DialTLS, "https://"
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
func (o *options) tour(ctx context.Context, e *exam) error {
	all, err := o.Admin.Namespaces(ctx)
	if err != nil {
		return o.Explain(ctx, err)
	}
	for _, n := range all[:min(mostSpaces, len(all))] {
		e.spaces = append(e.spaces, &spaceExam{config: n})
	}
	if members, err := o.Admin.Members(ctx); err == nil {
		e.members = members
	}
	if err := e.look(ctx, o.Admin, 0); err != nil {
		return o.Explain(ctx, err)
	}
	if !cli.Pause(ctx, o.lasting) {
		return ctx.Err()
	}
	return o.Explain(ctx, e.look(ctx, o.Admin, 1))
}

// options are the flags of "doctor".
type options struct {
	*cli.Client
	lasting time.Duration
	verbose bool
	policy  string
}

func (o *options) doctor(ctx context.Context) error {
	if o.lasting < leastExam || o.lasting > mostExam {
		return fmt.Errorf("--for %v: want %v to %v", o.lasting, leastExam, mostExam)
	}
	e := o.examine(ctx)
	if ctx.Err() != nil {
		return cli.StatusInterrupted
	}
	document := Report{Findings: []finding{}}
	for _, f := range diagnose(e) {
		switch f.Verdict {
		case Wrong:
			document.Wrong++
		case Hint:
			document.Hints++
		case skipped:
			if !o.verbose {
				continue
			}
		case Fine:
		}
		document.Findings = append(document.Findings, f)
	}
	if err := o.Print(document, document.text); err != nil {
		return err
	}
	if document.Wrong > 0 {
		return cli.StatusViolated
	}
	return nil
}

func (o *options) examineTLS() tlsExam {
	e := tlsExam{used: o.Keeper != nil, now: time.Now(), policy: o.policy}
	if o.Keeper != nil {
		e.own, e.mend = o.Keeper.Describe(), o.Keeper.Check()
	} else {
		for _, addr := range o.Managers {
			if !address.Loopback(addr) {
				e.plain = append(e.plain, addr)
			}
		}
	}
	if e.policy != "" {
		e.broken = readPolicy(e.policy)
	}
	return e
}

// A Verdict is what became of a check.
type Verdict string

// A finding is a check and what became of it.
type finding struct {
	Check   string  `json:"check"`   // what was checked: reach, leader, build, store, clock, ...
	Subject string  `json:"subject"` // whose: a manager's address, a namespace, an owner; "" for the group
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	Advice  string  `json:"advice,omitempty"` // what to do about it
}

// A doctorDocument is what "doctor --json" prints.
type Report struct {
	Wrong    int       `json:"wrong"` // how many checks
	Hints    int       `json:"hints"`
	Findings []finding `json:"findings"`
}

func (d Report) text() string {
	var out strings.Builder
	for _, f := range d.Findings {
		mark := string(f.Verdict)
		switch f.Verdict {
		case Fine:
			mark = console.Good("ok   ")
		case Hint:
			mark = console.Heading("hint ")
		case Wrong:
			mark = console.Bad("WRONG")
		case skipped:
			mark = "-    "
		}
		subject := ""
		if f.Subject != "" {
			subject = console.Shown(f.Subject) + ": "
		}
		fmt.Fprintf(&out, "%s  %-9s  %s%s\n", mark, f.Check, subject, console.Shown(f.Text))
		if f.Advice != "" {
			fmt.Fprintf(&out, "       %-9s  %s\n", "", console.Shown(f.Advice))
		}
	}
	switch {
	case d.Wrong == 0 && d.Hints == 0:
		out.WriteString("Nothing is wrong.\n")
	case d.Wrong == 0:
		fmt.Fprintf(&out, "Nothing is wrong; %s.\n", console.Counted(d.Hints, "hint"))
	default:
		fmt.Fprintf(&out, "%s wrong, %s.\n", console.Counted(d.Wrong, "check"), console.Counted(d.Hints, "hint"))
	}
	return out.String()
}

const (
	leastExam = time.Second
	mostExam  = 10 * time.Minute
)

// The verdicts. Programs rely on them.
const (
	Fine    Verdict = "ok"
	Hint    Verdict = "hint"
	Wrong   Verdict = "wrong"
	skipped Verdict = "skipped"
)

// An exam is all that was found out. What to make of it is for [diagnose] to say.
type exam struct {
	managers []*managerExam
	members  []admin.Member // none if managers do not keep the store themselves
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
	lookups   map[string]admin.Lookups // by namespace
}

// A spaceExam is a namespace at the beginning and at the end.
type spaceExam struct {
	config admin.Namespace
	looks  [2]spaceLook
}

type spaceLook struct {
	status *admin.NamespaceStatus // nil if there is none
	owners []admin.Owner
	moves  []admin.Move
	err    error
}

const (
	// sampleEvery is how often clocks are read.
	sampleEvery = 250 * time.Millisecond
	mostSamples = 1000
	// mostSpaces bounds how many namespaces are looked at closely.
	mostSpaces = 100
)

func listens(ctx context.Context, addr string, within time.Duration) bool {
	conn, err := (&net.Dialer{Timeout: within}).DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = conn.Close() // nothing was said
	}
	return err == nil
}

// lookupsOf returns the lookups that are connected to a manager, by namespace, as far as
// it is new enough to tell.
func lookupsOf(ctx context.Context, from *admin.Client, s *leaseholdv1.GetStatusResponse) map[string]admin.Lookups {
	out := make(map[string]admin.Lookups)
	for _, n := range s.GetNamespaces()[:min(mostSpaces, len(s.GetNamespaces()))] {
		answer, err := from.Lookups(ctx, n.GetName())
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

// look asks how the namespaces fare.
func (e *exam) look(ctx context.Context, from *admin.Client, which int) error {
	status, err := from.Status(ctx)
	if err != nil {
		return err
	}
	for _, s := range e.spaces {
		l := &s.looks[which]
		n, there := status.Namespace(s.config.Name)
		if there {
			l.status = &n
		}
		if !n.Ready {
			continue
		}
		owners, err := from.Owners(ctx, n.Name)
		if err != nil {
			l.err = err
			continue
		}
		l.owners = owners.Owners
		if moves, err := from.Moves(ctx, n.Name); err == nil {
			l.moves = moves.Moves
		}
	}
	return nil
}
