package supervise

import (
	"encoding/json"
	"fmt"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/secure"
)

// Variable is the environment variable with the number and the inode of the inherited socket, "100:4711".
const Variable = "LEASEHOLD_SUPERVISOR_FD"

const (
	// version is the newest version of the messages. Receivers ignore unknown fields and reject newer
	// versions.
	version = 1
	// maxMessage bounds a message in bytes. It exceeds a session with 64 managers.
	maxMessage = 32 << 10
	// maxManagers is the limit of an owner.
	maxManagers = 64
)

// A Session is a session of an owner in this process, with what a supervisor needs to report its end.
type Session struct {
	Namespace leasehold.Namespace `json:"namespace"`
	Owner     leasehold.OwnerID   `json:"owner"`
	ID        leasehold.Session   `json:"id"`
	Managers  []string            `json:"managers"`
	Files     *Files              `json:"files,omitempty"` // nil: managers use plaintext
}

// Files are the certificate files of the process; names are absolute.
type Files struct {
	Cert         string            `json:"cert,omitempty"`
	Key          string            `json:"key,omitempty"`
	Roots        string            `json:"roots"`
	Revoked      string            `json:"revoked,omitempty"`
	RevokedLater bool              `json:"revoked_later,omitempty"`
	Servers      []secure.Identity `json:"servers,omitempty"`
}

// FilesOf returns the files of a config.
func FilesOf(c *secure.Config) *Files {
	return &Files{c.Cert, c.Key, c.Roots, c.Revoked, c.RevokedLater, c.Servers}
}

// Config returns the config with these files.
func (f *Files) Config() secure.Config {
	return secure.Config{Cert: f.Cert, Key: f.Key, Roots: f.Roots, Revoked: f.Revoked, RevokedLater: f.RevokedLater, Servers: f.Servers}
}

// validate checks what the supervisor relies on. The manager checks the rest.
func (s *Session) validate() error {
	if err := s.Namespace.Validate(); err != nil {
		return err
	}
	if err := s.Owner.Validate(); err != nil {
		return err
	}
	if n := len(s.Managers); s.ID.IsZero() || n == 0 || n > maxManagers {
		return fmt.Errorf("session %s has %d managers: want a session, and 1 to %d managers", s.ID, n, maxManagers)
	}
	return nil
}

// A Death is a session whose process has ended, and the proof.
type Death struct {
	Session
	Token table.DeathToken
}

func (d *Death) is(s *Session) bool {
	return d.Namespace == s.Namespace && d.Owner == s.Owner && d.ID == s.ID
}

// The operations of requests.
const (
	opHello    = "hello"    // with a socket
	opRegister = "register" // the reply has a hash
	opLeave    = "leave"    // the session has released its leases
)

type request struct {
	Version int    `json:"version"`
	Seq     uint64 `json:"seq"`
	Op      string `json:"op"`

	Session *Session `json:"session,omitempty"`
}

type reply struct {
	Version int    `json:"version"`
	Seq     uint64 `json:"seq"`
	Hash    []byte `json:"hash,omitempty"`
	Error   string `json:"error,omitempty"`
}

// decode parses a request or a reply, and checks its version.
func decode(data []byte, into any, v *int) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("invalid message: %w", err)
	}
	if *v < 1 || *v > version {
		return fmt.Errorf("message version %d: this program supports 1 to %d; upgrade it", *v, version)
	}
	return nil
}
