package secure

import (
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
)

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
	if c.Poll == 0 {
		c.Poll = defaultPoll
	}
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
