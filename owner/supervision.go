package owner

import (
	"errors"
	"log/slog"
	"path/filepath"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/supervise"
	"github.com/leasehold-dev/leasehold/secure"
)

// A supervision is the registration of a session with the supervisor of this process, "leasehold run". The
// zero value is a session without one.
type supervision struct {
	client  *supervise.Client // nil without a supervisor
	session supervise.Session
	hash    table.DeathHash // of the token by which the supervisor proves the end of the process
}

// register registers a session, before any leader receives it. It waits for the supervisor for a second at
// most, and returns the zero value if there is none or it refuses.
//
// After a crash, other processes may rely on the promises of a session, and the copy of a cloned machine
// may still run. Both need WaitForPredecessor, so with it the session waits for its expiry.
func register(cfg *Config, id leasehold.Session, log *slog.Logger) supervision {
	if cfg.WaitForPredecessor {
		return supervision{}
	}
	client, err := supervise.Process()
	if err == nil && client == nil {
		return supervision{}
	}
	s := supervision{client: client, session: supervise.Session{Namespace: cfg.Namespace, Owner: cfg.Name, ID: id, Managers: cfg.Managers}}
	if err == nil {
		s.session.Files, err = filesOf(cfg.Credentials)
	}
	if err == nil {
		s.hash, err = client.Register(&s.session)
	}
	if err != nil {
		log.Warn("not supervised: after a crash the keys have no owner until the leases expire", "why", err)
		return supervision{}
	}
	log.Info("supervised: after a crash the leases end at once")
	return s
}

// filesOf returns the files of TLS credentials, which the supervisor uses too; nil for plaintext.
func filesOf(c credentials.TransportCredentials) (*supervise.Files, error) {
	if c.Info().SecurityProtocol == insecure.NewCredentials().Info().SecurityProtocol {
		return nil, nil
	}
	cfg, ok := secure.ClientConfig(c)
	if !ok {
		return nil, errors.New("the supervisor cannot use the credentials: they are not from package secure")
	}
	for _, name := range []*string{&cfg.Cert, &cfg.Key, &cfg.Roots, &cfg.Revoked} {
		if *name == "" {
			continue
		}
		absolute, err := filepath.Abs(*name)
		if err != nil {
			return nil, err
		}
		*name = absolute
	}
	return supervise.FilesOf(&cfg), nil
}

// unregister removes a session whose leases have ended: the end of the process does not matter to it.
func (s *supervision) unregister() {
	if s.client != nil {
		_ = s.client.Leave(&s.session) // then the leader ignores the report
	}
}
