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

// Config configures a Policy.
type Config struct {
	// File is the access file.
	File string
	// Revoked reports whether a certificate was revoked, such as secure.Keeper.Revoked.
	// It is called often and concurrently, and must not block. Default: no certificate
	// is revoked.
	Revoked func(*x509.Certificate) bool
	// Poll is the interval between reads of the file, 10 ms to 1 h. A new file is
	// applied when it is unchanged for 100 ms. Default 500 ms.
	Poll time.Duration
	// Limits are the rate limits of each identity.
	Limits Limits
	// Audit gets the audit log: admitted owners, operations, new files, denied calls.
	// Default: the Logger.
	Audit *slog.Logger
	// Logger is the default of Audit. Default slog.Default().
	Logger *slog.Logger
}

const opOpen = "open access policy"

// A Policy authorizes calls by an access file, and limits their rates. Several servers
// may share one. It is safe for concurrent use.
type Policy struct {
	cfg     Config
	ruleset atomic.Pointer[ruleset]
	audit   *audit
	budgets *budgets

	mu      sync.Mutex // held while the file is read
	problem string     // the error of the newest file
	seen    [sha256.Size]byte

	streamsMu sync.Mutex
	streams   map[*session]bool

	cancel context.CancelFunc
	done   chan struct{}
}

// Open reads an access file, and reloads it until Close.
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
		err = p.apply(text)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go p.run(ctx)
	return p, nil
}

// Close stops reloading the file and checking streams. Close the servers that use the
// policy first: their streams are no longer checked. It may be called more than once.
func (p *Policy) Close() {
	p.cancel()
	<-p.done
}

// Authenticate returns the caller with a bearer token, for servers other than gRPC.
func (p *Policy) Authenticate(token string) (Caller, error) {
	var c Caller
	if err := c.addToken(p.ruleset.Load(), token); err != nil {
		return Caller{}, err
	}
	return c, nil
}

// AuthenticateTLS returns the caller of a TLS connection; the zero Caller if the client
// sent no certificate.
func (p *Policy) AuthenticateTLS(state *tls.ConnectionState) (Caller, error) {
	var c Caller
	err := c.addCertificate(state)
	if err == nil {
		err = c.verify(p.ruleset.Load(), p.cfg.Revoked, time.Now())
	}
	if err != nil {
		return Caller{}, err
	}
	return c, nil
}

// Allow returns nil if a caller may call a method on a namespace and, for leases, under
// an owner name. The namespace is "" for a method that has none or lists several. The
// kind of the error is [leasehold.ErrDenied].
func (p *Policy) Allow(c Caller, fullMethod string, ns leasehold.Namespace, owner leasehold.OwnerID) error {
	s := &session{policy: p, caller: c, fullMethod: fullMethod, method: methodOf(fullMethod)}
	return s.decide(p.ruleset.Load(), subject{ns, owner})
}

// Visible returns a filter of the namespaces that the caller of ctx may read, for handlers
// that list them. The filter follows changes of the file. Without a caller it is always
// false.
func (p *Policy) Visible(ctx context.Context) func(leasehold.Namespace) bool {
	if s := sessionFrom(ctx); s != nil {
		return s.mayRead
	}
	return func(leasehold.Namespace) bool { return false }
}

// FromManager reports whether the call of ctx was made or forwarded by a manager.
func (p *Policy) FromManager(ctx context.Context) bool {
	s := sessionFrom(ctx)
	if s == nil {
		return false
	}
	b := p.ruleset.Load()
	if len(s.caller.via) > 0 {
		return anySatisfies(b.grants(s.caller.via), managersOnly)
	}
	return anySatisfies(s.grants(b), managersOnly)
}

func (p *Policy) deny(s *session, why error) error {
	p.audit.logDenial(s, why)
	return toStatus(why)
}

const (
	checkInterval   = 400 * time.Millisecond // of the checks of all streams
	cleanupInterval = 10 * time.Second       // of the removal of idle budgets
)

// register adds a call to those that checkStreams checks, until unregister.
func (p *Policy) register(s *session) error {
	if err := p.budgets.open(s); err != nil {
		return err
	}
	p.streamsMu.Lock()
	defer p.streamsMu.Unlock()
	p.streams[s] = true
	return nil
}

func (p *Policy) unregister(s *session) {
	p.budgets.close(s)
	p.streamsMu.Lock()
	defer p.streamsMu.Unlock()
	delete(p.streams, s)
}

func (p *Policy) run(ctx context.Context) {
	defer close(p.done)
	reading := time.NewTimer(p.cfg.Poll)
	defer reading.Stop()
	looking := time.NewTicker(checkInterval)
	defer looking.Stop()
	tidied := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-reading.C:
			reading.Reset(p.poll())
		case now := <-looking.C:
			p.checkStreams(now)
			p.audit.summarize(now)
			if now.Sub(tidied) >= cleanupInterval {
				tidied = now
				p.budgets.removeIdle(now)
			}
		}
	}
}

// checkStreams ends the streams that are no longer permitted. It costs O(streams).
func (p *Policy) checkStreams(now time.Time) {
	p.streamsMu.Lock()
	all := make([]*session, 0, len(p.streams))
	for s := range p.streams {
		all = append(all, s)
	}
	p.streamsMu.Unlock()
	for _, s := range all {
		if ending := s.ended.Load(); ending != nil {
			if now.Sub(ending.at) >= checkInterval { // its handler had time to return the status
				s.force()
			}
		} else if err := s.checkStream(now); err != nil {
			_ = s.end(err) // its handler returns the status
		}
	}
}
