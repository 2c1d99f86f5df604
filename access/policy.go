package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// Config says where the access file is, and what belongs to it.
type Config struct {
	// File is the access file.
	File string
	// Revoked reports whether a certificate was revoked, as secure.Keeper's does. It
	// is called often, from many goroutines at once, and must not wait. Default:
	// none is.
	Revoked func(*x509.Certificate) bool
	// Poll is how often the file is read again, 10 ms to an hour. A new one is taken
	// when it has stood still for a tenth of a second. Default 500 ms.
	Poll time.Duration
	// Limits bound what one identity may ask of a manager.
	Limits Limits
	// Audit gets what is to be kept: who was let in, who has given which order, and
	// who was refused. Default: the Logger.
	Audit *slog.Logger
	// Logger hears of files that cannot be taken. Default slog.Default().
	Logger *slog.Logger
}

const opOpen = "open access policy"

// A Policy is an access file in force, and what its callers do. Several servers may
// share one. Its methods may be called from many goroutines at once.
type Policy struct {
	cfg     Config
	book    atomic.Pointer[book]
	audit   *audit
	budgets *budgets

	mu      sync.Mutex // for the reading of the file
	trouble string     // what was wrong with the newest one
	seen    [sha256.Size]byte

	streamsMu sync.Mutex
	streams   map[*session]bool

	cancel context.CancelFunc
	done   chan struct{}
}

// Open reads an access file, and goes on reading it until Close.
func Open(cfg Config) (*Policy, error) {
	if cfg.File == "" {
		return nil, leasehold.Errorf(opOpen, leasehold.ErrInvalid, "", "File is missing")
	}
	cfg.Poll = cmp.Or(cfg.Poll, 500*time.Millisecond)
	if cfg.Poll < 10*time.Millisecond || cfg.Poll > time.Hour {
		return nil, leasehold.Errorf(opOpen, leasehold.ErrInvalid, cfg.File, "Poll is %v, want 10ms to 1h", cfg.Poll)
	}
	if err := cfg.Limits.validate(); err != nil {
		return nil, err
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	cfg.Audit = cmp.Or(cfg.Audit, cfg.Logger)
	p := &Policy{
		cfg: cfg, audit: newAudit(cfg.Audit), budgets: newBudgets(cfg.Limits),
		streams: make(map[*session]bool), done: make(chan struct{}),
	}
	text, err := read(cfg.File)
	if err == nil {
		err = p.take(text)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go p.run(ctx)
	return p, nil
}

// Close ends the reading of the file, and waits for it. Servers that go by the
// policy are closed first: streams are no longer ended when it changes. It may be
// called more than once.
func (p *Policy) Close() {
	p.cancel()
	<-p.done
}

// Authenticate returns who has a bearer token, for those who are not called by gRPC.
func (p *Policy) Authenticate(token string) (Caller, error) {
	var c Caller
	if err := c.bear(p.book.Load(), token); err != nil {
		return Caller{}, err
	}
	return c, nil
}

// AuthenticateTLS returns who has connected by TLS; the zero Caller if it has shown no
// certificate.
func (p *Policy) AuthenticateTLS(state *tls.ConnectionState) (Caller, error) {
	var c Caller
	err := c.certified(state)
	if err == nil {
		err = c.verify(p.book.Load(), p.cfg.Revoked, time.Now())
	}
	if err != nil {
		return Caller{}, err
	}
	return c, nil
}

// Allow reports why a caller may not call a method about a namespace and, if it wants
// to hold leases, under a name; nil if it may. Of a method that is about no namespace,
// or lists several, the namespace is "". The kind of the error is [leasehold.ErrDenied].
func (p *Policy) Allow(c Caller, fullMethod string, ns leasehold.Namespace, owner leasehold.OwnerID) error {
	s := &session{policy: p, caller: c, fullMethod: fullMethod, method: methodOf(fullMethod)}
	return s.decide(p.book.Load(), subject{ns, owner})
}

// Visible returns which namespaces the caller of ctx may read about, at any time that
// it is asked: for handlers that list them. Without a caller there are none.
func (p *Policy) Visible(ctx context.Context) func(leasehold.Namespace) bool {
	if s := sessionFrom(ctx); s != nil {
		return s.sees
	}
	return func(leasehold.Namespace) bool { return false }
}

// FromManager reports whether the call of ctx was made by a manager, or passed on by one.
func (p *Policy) FromManager(ctx context.Context) bool {
	s := sessionFrom(ctx)
	if s == nil {
		return false
	}
	b := p.book.Load()
	if len(s.caller.via) > 0 {
		return anyMeets(b.grants(s.caller.via), forManagers)
	}
	return anyMeets(s.by(b), forManagers)
}

func (p *Policy) refuse(s *session, why error) error {
	p.audit.refuse(s, why)
	return toStatus(why)
}

// lookEvery is how often streams are looked at, and tidyEvery how often those are
// forgotten who ask for nothing.
const (
	lookEvery = 400 * time.Millisecond
	tidyEvery = 10 * time.Second
)

// enter lets a call be looked at until it leaves.
func (p *Policy) enter(s *session) error {
	if err := p.budgets.open(s); err != nil {
		return err
	}
	p.streamsMu.Lock()
	defer p.streamsMu.Unlock()
	p.streams[s] = true
	return nil
}

func (p *Policy) leave(s *session) {
	p.budgets.close(s)
	p.streamsMu.Lock()
	defer p.streamsMu.Unlock()
	delete(p.streams, s)
}

func (p *Policy) run(ctx context.Context) {
	defer close(p.done)
	reading := time.NewTimer(p.cfg.Poll)
	defer reading.Stop()
	looking := time.NewTicker(lookEvery)
	defer looking.Stop()
	tidied := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-reading.C:
			reading.Reset(p.poll())
		case now := <-looking.C:
			p.look(now)
			p.audit.sumUp(now)
			if now.Sub(tidied) >= tidyEvery {
				tidied = now
				p.budgets.tidy(now)
			}
		}
	}
}

// look ends the streams that are not permitted any more.
func (p *Policy) look(now time.Time) {
	p.streamsMu.Lock()
	all := make([]*session, 0, len(p.streams))
	for s := range p.streams {
		all = append(all, s)
	}
	p.streamsMu.Unlock()
	for _, s := range all {
		if over := s.ended.Load(); over != nil {
			if now.Sub(over.at) >= lookEvery { // its handler has had time to say why
				s.force()
			}
		} else if err := s.look(now); err != nil {
			_ = s.end(err) // its handler returns it
		}
	}
}
