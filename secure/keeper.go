package secure

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// settle is how long after a change the files are read again, at most: only
// what stands still is taken.
const settle = time.Second

// A Keeper keeps who we are and whom we trust, and reads it again from its files
// while it is open. All its methods may be called from several goroutines.
type Keeper struct {
	cfg  Config
	now  atomic.Pointer[material]
	stop context.CancelFunc
	done chan struct{} // closed when the poller has ended

	refusals refusals

	mu      sync.Mutex // of readings, and of what follows
	seen    [sha256.Size]byte
	trouble string   // why the newest reading could not be taken, "" if it could
	told    []string // the problems that the log has
}

// Open reads the files, checks all of them, and watches them until Close.
func Open(cfg Config) (*Keeper, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	read, err := readFiles(&cfg, false)
	var m *material
	if err == nil {
		m, err = parse(&cfg, read, time.Now())
	}
	if err != nil {
		return nil, leasehold.Errorf(opOpen, leasehold.ErrInvalid, "", "%w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	k := &Keeper{cfg: cfg, stop: stop, done: make(chan struct{}), seen: m.digest}
	k.now.Store(m)
	k.tellProblems()
	go k.poll(ctx)
	return k, nil
}

// Close ends the watching, and waits for that. Configs and credentials of the
// Keeper go on working with the files as they were last read.
func (k *Keeper) Close() {
	k.stop()
	<-k.done
}

// Reload reads the files now, and takes them if they are in order. If not, the
// error says why, and everything stays as it was.
func (k *Keeper) Reload() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	read, err := readFiles(&k.cfg, k.now.Load().listed)
	if err == nil && read.digest() != k.now.Load().digest {
		err = k.take(read)
	}
	k.tell(err)
	if err != nil {
		return leasehold.Errorf(opReload, leasehold.ErrInvalid, "", "%w", err)
	}
	return nil
}

// Changed returns a channel that is closed when files newer than those of now
// have been taken.
func (k *Keeper) Changed() <-chan struct{} { return k.now.Load().changed }

// Revoked reports whether a certificate is on one of the lists of Config.Revoked.
// It allocates nothing. Whoever holds a connection for long asks again, for each
// certificate of the peer's chain.
func (k *Keeper) Revoked(cert *x509.Certificate) bool { return k.now.Load().revoked.has(cert) }

// Expires returns until when our own certificate is valid: its end, or that of
// an intermediate certificate beside it if that comes first. It is the zero time
// if we have none.
func (k *Keeper) Expires() time.Time { return k.now.Load().end }

func (k *Keeper) poll(ctx context.Context) {
	defer close(k.done)
	timer := time.NewTimer(k.cfg.Poll)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(k.look())
		}
	}
}

// look reads the files and returns when to do so again. A change is taken when
// the same is read twice: certificate and key are seldom replaced in one stroke.
func (k *Keeper) look() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	read, err := readFiles(&k.cfg, k.now.Load().listed)
	if err == nil {
		switch digest := read.digest(); {
		case digest == k.now.Load().digest:
			k.seen = digest // what was seen before it does not stand still
		case digest != k.seen:
			k.seen = digest
			return min(k.cfg.Poll, settle)
		default:
			err = k.take(read)
		}
	}
	k.tell(err)
	return k.cfg.Poll
}

// take makes new files those of now, if they are in order.
func (k *Keeper) take(read files) error {
	m, err := parse(&k.cfg, read, time.Now())
	if err != nil {
		return err
	}
	old := k.now.Swap(m)
	k.seen = m.digest
	d := k.Describe()
	k.cfg.Logger.Info("new certificates taken", "identities", d.Identities, "expires", d.NotAfter, "roots", len(m.roots), "lists", len(m.revoked.lists))
	close(old.changed)
	return nil
}

// tell says once what is wrong with the newest files, and what is wrong with
// those that we go by.
func (k *Keeper) tell(err error) {
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	if trouble != "" && trouble != k.trouble {
		k.cfg.Logger.Warn("the certificates on disk cannot be taken; we go on with those we have", "error", trouble)
	}
	k.trouble = trouble
	k.tellProblems()
}

func (k *Keeper) tellProblems() {
	problems := k.now.Load().problems(time.Now())
	for _, p := range problems {
		if !slices.Contains(k.told, p) {
			k.cfg.Logger.Warn(p)
		}
	}
	k.told = problems
}

// Config says in which files a process finds out who it is and whom it trusts.
type Config struct {
	// Cert and Key are PEM files: our certificate, followed by the intermediate
	// certificates if there are any, and its private key. A client that shows
	// itself in another way, with a bearer token, leaves both empty; it cannot
	// serve.
	//
	// The key is refused if others than its user and group can read it: 0600,
	// 0400, or 0640 and 0440, as Kubernetes mounts secrets.
	Cert, Key string

	// Roots is a PEM file with the certificates of the CAs that we trust, for
	// clients and servers alike. There may be several: while a CA is replaced,
	// the old one and the new one.
	Roots string

	// Revoked is a file with certificate revocation lists, PEM or one in DER. A
	// list counts if a root has signed it, or a CA whose certificate is in the
	// same file and leads to a root. One that is past its next update counts on,
	// and the log says so. Default: nothing is revoked.
	Revoked string
	// RevokedLater: the file Revoked may come later, and nothing is revoked until then.
	// Once it was there it must stay, as the others must: what is revoked is not forgotten
	// because a file is gone.
	RevokedLater bool

	// Servers are the identities of the servers that we call. If there are any,
	// a server must have one of them, and its host name does not matter: for
	// SPIFFE, whose certificates have no host names. "{name}" stands for one
	// segment of a path or label of a host name. Default: a server's certificate
	// must have the host name or address that was dialled.
	Servers []Identity

	// Poll is how often the files are read again, 100 ms to an hour. New ones
	// are taken one more reading later, when they are seen to stand still.
	// Default: 5 s.
	Poll time.Duration

	// Logger hears of new files, of files that could not be taken, of
	// certificates that are about to expire, and of peers that were refused.
	// Default: none.
	Logger *slog.Logger
}

// Dir is the Config of a directory as "leasehold pki" makes them, and as Kubernetes
// mounts them: tls.crt, tls.key, ca.crt, and crl.pem as soon as it is there.
func Dir(dir string) Config {
	return Config{
		Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), Roots: filepath.Join(dir, "ca.crt"),
		Revoked: filepath.Join(dir, "crl.pem"), RevokedLater: true,
	}
}

const (
	defaultPoll = 5 * time.Second
	minPoll     = 100 * time.Millisecond
	maxPoll     = time.Hour
)

func (c *Config) validate() error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(opOpen, leasehold.ErrInvalid, "", format, args...)
	}
	if c.Roots == "" {
		return bad("Roots is missing: the file with the certificates of the CAs to trust")
	}
	if (c.Cert == "") != (c.Key == "") {
		return bad("Cert %q and Key %q: want both files, or neither", c.Cert, c.Key)
	}
	c.Poll = cmp.Or(c.Poll, defaultPoll)
	if c.Poll < minPoll || c.Poll > maxPoll {
		return bad("poll %v: want %v to %v", c.Poll, minPoll, maxPoll)
	}
	for _, server := range c.Servers {
		if err := server.Validate(); err != nil {
			return bad("Servers: %w", err)
		}
	}
	c.Servers = slices.Clone(c.Servers)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}
