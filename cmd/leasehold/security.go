package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/pki"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/secure"
)

// securitySettings is what flags, the environment and a file say about who this process
// is and whom it trusts. All commands that listen or dial have the same.
type securitySettings struct {
	dir                    string
	cert, key, ca, revoked string
	servers                []string
	insecure               bool     // the network can be trusted
	exposed                []string // what is in plain text because of that

	tokenFile string // of commands that ask
	token     secret.Text

	origin func(flag string) string
}

// addFlags adds the flags that all have.
func (s *securitySettings) addFlags(f *pflag.FlagSet, origin func(flag string) string) {
	s.origin = origin
	f.StringVar(&s.dir, "tls-dir", "", "a `directory` with our certificate tls.crt, its key tls.key, whom we trust ca.crt,\nand crl.pem once something is revoked; 'leasehold pki' makes such. They are read again\nwhen they change")
	f.StringVar(&s.cert, "tls-cert", "", "a `file` with our certificate, instead of that in --tls-dir")
	f.StringVar(&s.key, "tls-key", "", "a `file` with its key")
	f.StringVar(&s.ca, "tls-ca", "", "a `file` with the certificates of those whom we trust")
	f.StringVar(&s.revoked, "tls-revoked", "", "a `file` with revocation lists")
	f.StringSliceVar(&s.servers, "tls-servers", nil, "`identities` that managers must have, such as spiffe://example.org/manager/{name}\n(default their host names are checked)")
	f.BoolVar(&s.insecure, insecureFlag, false, insecureUsage)
}

// addToken adds the flag of commands that ask. A token is no flag itself: other users of
// the computer can see those.
func (s *securitySettings) addToken(f *pflag.FlagSet) {
	f.StringVar(&s.tokenFile, "token-file", "", "a `file` that only we can read, with a token by which managers know us")
}

// tls reports whether connections are secured.
func (s *securitySettings) tls() bool {
	return s.dir != "" || s.ca != "" || s.cert != "" || s.key != ""
}

// validate says what is wrong, and reads the token.
func (s *securitySettings) validate() error {
	for flag, needs := range map[string]bool{"tls-revoked": s.revoked != "", "tls-servers": len(s.servers) > 0} {
		if needs && !s.tls() {
			return fmt.Errorf("%s is for TLS, and there is none: say with --tls-dir where the certificates are", s.origin(flag))
		}
	}
	for _, id := range s.servers {
		if err := secure.Identity(id).Validate(); err != nil {
			return fmt.Errorf("%s: %w", s.origin("tls-servers"), err)
		}
	}
	switch {
	case s.tls() && s.dir == "" && s.ca == "":
		return errors.New("--tls-ca is missing, the file with the certificates of those whom we trust; or name a directory with --tls-dir")
	case s.tokenFile == "":
		return nil
	}
	token, err := readSecret(s.tokenFile)
	if err != nil {
		return fail(fmt.Errorf("%s: %w", s.origin("token-file"), err))
	}
	s.token = token
	return nil
}

// config says in which files a keeper finds what the flags name.
func (s *securitySettings) config(log *slog.Logger) secure.Config {
	var cfg secure.Config
	if s.dir != "" {
		cfg = secure.Dir(s.dir)
	}
	cfg.Cert, cfg.Key, cfg.Roots = cmp.Or(s.cert, cfg.Cert), cmp.Or(s.key, cfg.Key), cmp.Or(s.ca, cfg.Roots)
	if s.revoked != "" {
		cfg.Revoked, cfg.RevokedLater = s.revoked, false // whoever names a file means it
	}
	cfg.Logger = log
	for _, id := range s.servers {
		cfg.Servers = append(cfg.Servers, secure.Identity(id))
	}
	if s.cert == "" && s.key == "" && ifThere(cfg.Cert) == "" && ifThere(cfg.Key) == "" {
		cfg.Cert, cfg.Key = "", "" // a directory of somebody who shows a token
	}
	return cfg
}

// ifThere returns a file's name if it exists.
func ifThere(file string) string {
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// open reads the certificates. The keeper is nil if connections are in plain text. The
// caller closes it.
func (s *securitySettings) open(log *slog.Logger) (*secure.Keeper, error) {
	if !s.tls() {
		return nil, nil
	}
	k, err := secure.Open(s.config(log))
	if err != nil {
		return nil, fail(err)
	}
	return k, nil
}

// openServer is open for a process that others connect to: it needs a certificate.
func (s *securitySettings) openServer(log *slog.Logger) (*secure.Keeper, error) {
	k, err := s.open(log)
	if err != nil || k == nil {
		return k, err
	}
	if k.Expires().IsZero() {
		k.Close()
		return nil, fail(fmt.Errorf("whoever is called needs a certificate: there is no tls.crt and tls.key in %s, and no --tls-cert and --tls-key", cmp.Or(s.dir, filepath.Dir(s.ca))))
	}
	if err := canServe(k); err != nil {
		k.Close()
		return nil, fail(err)
	}
	return k, nil
}

// canServe refuses a certificate that every client would refuse.
func canServe(k *secure.Keeper) error {
	if d := k.Describe(); !d.Server {
		return fmt.Errorf("the certificate of %s is for clients alone, and whoever connects would refuse it: 'leasehold pki issue' with --host makes one that can serve", who(&d))
	}
	return nil
}

// dialling returns the credentials for calls to managers. Plain text stays within this
// computer unless somebody has said otherwise. Where "leasehold pki" has made the CA it is
// known who is a manager, and nobody else is spoken to.
func (s *securitySettings) dialling(k *secure.Keeper) credentials.TransportCredentials {
	if k == nil {
		return plainCredentials(s.insecure)
	}
	if managers := pki.Managers(s.config(nil).Roots); len(managers) > 0 && len(s.servers) == 0 {
		return ofManagers{k.Client(), managers}
	}
	return k.Client()
}

// serving returns the credentials of a server.
func (s *securitySettings) serving(k *secure.Keeper) credentials.TransportCredentials {
	if k != nil {
		return k.Server()
	}
	return plainCredentials(s.insecure)
}

// expose decides about the addresses of a command that may be in plain text, and keeps
// those that there is to warn of.
func (s *securitySettings) expose(contacts []contact) (err error) {
	s.exposed, err = plainTexts(contacts, s.insecure)
	return err
}

// perRPC returns the credentials by which calls show the token, nil if there is none.
func (s *securitySettings) perRPC() credentials.PerRPCCredentials {
	if s.token.Len() == 0 {
		return nil
	}
	return access.Bearer(s.token.Reveal(), !s.tls())
}

// showing are options by which calls show the token, if there is one.
func (s *securitySettings) showing() []grpc.DialOption {
	if token := s.perRPC(); token != nil {
		return []grpc.DialOption{grpc.WithPerRPCCredentials(token)}
	}
	return nil
}
