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

// settleTime is the longest delay between the two reads of a change: files are applied when
// both reads agree.
const settleTime = time.Second

// filesRejected begins the messages about invalid files.
const filesRejected = "certificate files rejected, the previous ones stay in force"

// A Keeper holds the certificate and the trusted roots of a process, and reloads their
// files while it is open. It is safe for concurrent use.
type Keeper struct {
	cfg  Config
	now  atomic.Pointer[material]
	stop context.CancelFunc
	done chan struct{} // closed when the poller has ended

	rejections rejectionLog

	mu      sync.Mutex // held while files are read; guards the fields below
	seen    [sha256.Size]byte
	problem string   // why the newest files are invalid; "" if they are valid
	logged  []string // the current problems that have been logged
}

// Open reads and checks the files, and watches them until Close.
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
	k.logProblems()
	go k.poll(ctx)
	return k, nil
}

// Close stops watching the files. Configs and credentials of the Keeper keep working with
// the files in force.
func (k *Keeper) Close() {
	k.stop()
	<-k.done
}

// Reload reads the files and applies them if they are valid. Otherwise it returns the
// reason, and the previous files stay in force.
func (k *Keeper) Reload() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	read, err := readFiles(&k.cfg, k.now.Load().listed)
	if err == nil && read.digest() != k.now.Load().digest {
		err = k.apply(read)
	}
	k.logProblem(err)
	if err != nil {
		return leasehold.Errorf(opReload, leasehold.ErrInvalid, "", "%w", err)
	}
	return nil
}

// Changed returns a channel that is closed when newer files are applied.
func (k *Keeper) Changed() <-chan struct{} { return k.now.Load().changed }

// Revoked reports whether a certificate is on a list of Config.Revoked. It does not
// allocate. A server with long connections should repeat the check for each certificate
// of the peer's chain.
func (k *Keeper) Revoked(cert *x509.Certificate) bool { return k.now.Load().revoked.has(cert) }

// Expires returns when the process's certificate, or the first of its intermediate
// certificates, expires. It is zero without a certificate.
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
			timer.Reset(k.pollFiles())
		}
	}
}

// pollFiles reads the files and returns the delay until the next read. A change is applied
// when two consecutive reads agree: certificate and key are seldom replaced atomically.
func (k *Keeper) pollFiles() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	read, err := readFiles(&k.cfg, k.now.Load().listed)
	if err == nil {
		switch digest := read.digest(); {
		case digest == k.now.Load().digest:
			k.seen = digest // a change that was undone must settle again
		case digest != k.seen:
			k.seen = digest
			return min(k.cfg.Poll, settleTime)
		default:
			err = k.apply(read)
		}
	}
	k.logProblem(err)
	return k.cfg.Poll
}

// apply puts new files in force if they are valid.
func (k *Keeper) apply(read files) error {
	m, err := parse(&k.cfg, read, time.Now())
	if err != nil {
		return err
	}
	old := k.now.Swap(m)
	k.seen = m.digest
	d := k.Describe()
	k.cfg.Logger.Info("certificates loaded", "identities", d.Identities, "expires", d.NotAfter, "roots", len(m.roots), "lists", len(m.revoked.lists))
	close(old.changed)
	return nil
}

// logProblem logs each new problem of the newest files and of the files in force once.
func (k *Keeper) logProblem(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != "" && problem != k.problem {
		k.cfg.Logger.Warn(filesRejected, "error", problem)
	}
	k.problem = problem
	k.logProblems()
}

func (k *Keeper) logProblems() {
	problems := k.now.Load().problems(time.Now())
	for _, p := range problems {
		if !slices.Contains(k.logged, p) {
			k.cfg.Logger.Warn(p)
		}
	}
	k.logged = problems
}

// Config lists the files of a Keeper.
type Config struct {
	// Cert and Key are PEM files: the process's certificate, followed by any intermediate
	// certificates, and its private key. A client that authenticates with a bearer token
	// leaves both empty; it cannot serve.
	//
	// The key must not be readable by users other than its owner and group: mode 0600,
	// 0400, 0640 or 0440; Kubernetes mounts secrets with the last.
	Cert, Key string

	// Roots is a PEM file with the certificates of the trusted CAs, for clients and
	// servers. While a CA is replaced, it has the old and the new one.
	Roots string

	// Revoked is a file with certificate revocation lists, in PEM, or one in DER. A list
	// is in force if a root has signed it, or a CA whose certificate is in the same file
	// and leads to a root. A list that is past its next update stays in force, with a
	// line in the log. Default: no certificate is revoked.
	Revoked string
	// RevokedLater permits the file Revoked to be missing until it appears for the first
	// time. After that it is required like the other files, so that its deletion does not
	// undo revocations.
	RevokedLater bool

	// Servers are the permitted identities of servers that this process calls. If it is
	// not empty, host names are not verified: certificates of SPIFFE have none. "{name}"
	// matches one segment of a path or label of a host name. Default: a server's
	// certificate must have the dialled host name or address.
	Servers []Identity

	// Poll is the interval between reads of the files, 100 ms to 1 h. A change is applied
	// at the second read that agrees. Default: 5 s.
	Poll time.Duration

	// Logger gets new files, invalid files, certificates that expire soon, and rejected
	// connections. Default: none.
	Logger *slog.Logger
}

// Dir returns the Config of a directory of "leasehold pki" or of a Kubernetes TLS secret:
// tls.crt, tls.key, ca.crt, and optionally crl.pem.
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
		return bad("Roots is missing: the file with the certificates of the trusted CAs")
	}
	if (c.Cert == "") != (c.Key == "") {
		return bad("Cert is %q and Key is %q: want both files, or neither", c.Cert, c.Key)
	}
	c.Poll = cmp.Or(c.Poll, defaultPoll)
	if c.Poll < minPoll || c.Poll > maxPoll {
		return bad("Poll is %v, want %v to %v", c.Poll, minPoll, maxPoll)
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
