// Package doctor examines a running cluster (managers, clocks, certificates, namespaces, owners and
// lookups), and advises how to fix problems.
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

// examine observes all managers concurrently for some time.
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
	defer one.Close() //nolint:errcheck // no call is in flight
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

// observe samples the status and clocks of a manager for the observation time.
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
		return leasehold.Errorf("", leasehold.ErrUnavailable, "", "no response within %v", o.Timeout)
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
	defer answer.Body.Close() //nolint:errcheck // read-only
	const most = 1000
	text, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if answer.StatusCode != http.StatusOK {
		return fmt.Sprintf("%s: %s", answer.Status, text), err
	}
	return "", err
}

// tour reads the state of all namespaces at the start and at the end.
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

// A Verdict is the result of a check.
type Verdict string

// A finding is a check and its result.
type finding struct {
	Check   string  `json:"check"`   // reach, leader, build, store, clock, ...
	Subject string  `json:"subject"` // a manager's address, a namespace or an owner; "" for the group
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	Advice  string  `json:"advice,omitempty"` // how to fix it
}

// A Report is the output of "doctor --json".
type Report struct {
	Wrong    int       `json:"wrong"` // number of findings
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

// The verdicts, a stable interface for programs.
const (
	Fine    Verdict = "ok"
	Hint    Verdict = "hint"
	Wrong   Verdict = "wrong"
	skipped Verdict = "skipped"
)

// An exam holds all observations. [diagnose] derives the findings.
type exam struct {
	managers []*managerExam
	members  []admin.Member // none without embedded stores
	spaces   []*spaceExam
	tls      tlsExam
	failed   error // of reading the namespaces
}

// A managerExam holds the observations of one manager.
type managerExam struct {
	addr    string
	err     error // no response
	listens bool  // connections are accepted anyway
	status  *leaseholdv1.GetStatusResponse
	shown   *x509.Certificate // nil for plaintext
	fastest time.Duration     // round trip
	samples []clockSample

	health    error // of the readiness request
	unhealthy string
	lookups   map[string]admin.Lookups // by namespace
}

// A spaceExam is the state of a namespace at the start and at the end.
type spaceExam struct {
	config admin.Namespace
	looks  [2]spaceLook
}

type spaceLook struct {
	status *admin.NamespaceStatus // nil if unknown
	owners []admin.Owner
	moves  []admin.Move
	err    error
}

const (
	// sampleEvery is the interval of clock samples.
	sampleEvery = 250 * time.Millisecond
	mostSamples = 1000
	// mostSpaces bounds the number of namespaces that are examined.
	mostSpaces = 100
)

func listens(ctx context.Context, addr string, within time.Duration) bool {
	conn, err := (&net.Dialer{Timeout: within}).DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = conn.Close() // no data was sent
	}
	return err == nil
}

// lookupsOf returns the lookups that are connected to a manager, by namespace; none if the manager
// is too old.
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

// httpOf returns the HTTP address of a manager as seen from this computer. If the address has no
// host, it is that of the manager. It is "" for the loopback of another computer.
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

// look reads the state of the namespaces.
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
