package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/secure"
)

// securitySettings is what flags, the environment and a file say about who this process
// is and whom it trusts. All commands that listen or dial have the same.
type Security struct {
	Dir                    string
	cert, key, Ca, Revoked string
	Servers                []string
	Insecure               bool     // the network can be trusted
	Exposed                []string // what is in plain text because of that

	tokenFile string // of commands that ask
	token     secret.Text

	origin func(flag string) string
}

// AddFlags adds the flags that all have.
func (s *Security) AddFlags(f *pflag.FlagSet, origin func(flag string) string) {
	s.origin = origin
	f.StringVar(&s.Dir, "tls-dir", "", "a `directory` with our certificate tls.crt, its key tls.key, whom we trust ca.crt,\nand crl.pem once something is revoked; 'leasehold pki' makes such. They are read again\nwhen they change")
	f.StringVar(&s.cert, "tls-cert", "", "a `file` with our certificate, instead of that in --tls-dir")
	f.StringVar(&s.key, "tls-key", "", "a `file` with its key")
	f.StringVar(&s.Ca, "tls-ca", "", "a `file` with the certificates of those whom we trust")
	f.StringVar(&s.Revoked, "tls-revoked", "", "a `file` with revocation lists")
	f.StringSliceVar(&s.Servers, "tls-servers", nil, "`identities` that managers must have, such as spiffe://example.org/manager/{name}\n(default their host names are checked)")
	f.BoolVar(&s.Insecure, InsecureFlag, false, insecureUsage)
}

// AddToken adds the flag of commands that ask. A token is no flag itself: other users of
// the computer can see those.
func (s *Security) AddToken(f *pflag.FlagSet) {
	f.StringVar(&s.tokenFile, "token-file", "", "a `file` that only we can read, with a token by which managers know us")
}

// Tls reports whether connections are secured.
func (s *Security) Tls() bool {
	return s.Dir != "" || s.Ca != "" || s.cert != "" || s.key != ""
}

// Validate says what is wrong, and reads the token.
func (s *Security) Validate() error {
	for flag, needs := range map[string]bool{"tls-revoked": s.Revoked != "", "tls-servers": len(s.Servers) > 0} {
		if needs && !s.Tls() {
			return fmt.Errorf("%s is for TLS, and there is none: say with --tls-dir where the certificates are", s.origin(flag))
		}
	}
	for _, id := range s.Servers {
		if err := secure.Identity(id).Validate(); err != nil {
			return fmt.Errorf("%s: %w", s.origin("tls-servers"), err)
		}
	}
	switch {
	case s.Tls() && s.Dir == "" && s.Ca == "":
		return errors.New("--tls-ca is missing, the file with the certificates of those whom we trust; or name a directory with --tls-dir")
	case s.tokenFile == "":
		return nil
	}
	token, err := ReadSecret(s.tokenFile)
	if err != nil {
		return Fail(fmt.Errorf("%s: %w", s.origin("token-file"), err))
	}
	s.token = token
	return nil
}

// Config says in which files a keeper finds what the flags name.
func (s *Security) Config(log *slog.Logger) secure.Config {
	var cfg secure.Config
	if s.Dir != "" {
		cfg = secure.Dir(s.Dir)
	}
	cfg.Cert, cfg.Key, cfg.Roots = cmp.Or(s.cert, cfg.Cert), cmp.Or(s.key, cfg.Key), cmp.Or(s.Ca, cfg.Roots)
	if s.Revoked != "" {
		cfg.Revoked, cfg.RevokedLater = s.Revoked, false // whoever names a file means it
	}
	cfg.Logger = log
	for _, id := range s.Servers {
		cfg.Servers = append(cfg.Servers, secure.Identity(id))
	}
	if s.cert == "" && s.key == "" && ifThere(cfg.Cert) == "" && ifThere(cfg.Key) == "" {
		cfg.Cert, cfg.Key = "", "" // a directory of somebody who shows a token
	}
	return cfg
}

func ifThere(file string) string {
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// Open reads the certificates. The keeper is nil if connections are in plain text. The
// caller closes it.
func (s *Security) Open(log *slog.Logger) (*secure.Keeper, error) {
	if !s.Tls() {
		return nil, nil
	}
	k, err := secure.Open(s.Config(log))
	if err != nil {
		return nil, Fail(err)
	}
	return k, nil
}

// OpenServer is open for a process that others connect to: it needs a certificate.
func (s *Security) OpenServer(log *slog.Logger) (*secure.Keeper, error) {
	k, err := s.Open(log)
	if err != nil || k == nil {
		return k, err
	}
	if k.Expires().IsZero() {
		k.Close()
		return nil, Fail(fmt.Errorf("whoever is called needs a certificate: there is no tls.crt and tls.key in %s, and no --tls-cert and --tls-key", cmp.Or(s.Dir, filepath.Dir(s.Ca))))
	}
	if err := CanServe(k); err != nil {
		k.Close()
		return nil, Fail(err)
	}
	return k, nil
}

// CanServe refuses a certificate that every client would refuse.
func CanServe(k *secure.Keeper) error {
	if d := k.Describe(); !d.Server {
		return fmt.Errorf("the certificate of %s is for clients alone, and whoever connects would refuse it: 'leasehold pki issue' with --host makes one that can serve", Who(&d))
	}
	return nil
}

// Dialling returns the credentials for calls to managers. Plain text stays within this
// computer unless somebody has said otherwise. Where "leasehold pki" has made the CA it is
// known who is a manager, and nobody else is spoken to.
func (s *Security) Dialling(k *secure.Keeper) credentials.TransportCredentials {
	if k == nil {
		return plainCredentials(s.Insecure)
	}
	if managers := pki.Managers(s.Config(nil).Roots); len(managers) > 0 && len(s.Servers) == 0 {
		return ofManagers{k.Client(), managers}
	}
	return k.Client()
}

// Serving returns the credentials of a server.
func (s *Security) Serving(k *secure.Keeper) credentials.TransportCredentials {
	if k != nil {
		return k.Server()
	}
	return plainCredentials(s.Insecure)
}

// Expose decides whether addresses of a flag may be used: they may if they are secured, if they are on
// this computer, or if the network can be trusted. In the last case it keeps them for a warning.
func (s *Security) Expose(flag string, secured bool, addrs ...string) error {
	for _, addr := range addrs {
		switch {
		case addr == "" || secured || address.Loopback(addr):
		case s.Insecure:
			s.Exposed = append(s.Exposed, addr)
		default:
			return fmt.Errorf("%s %s: others than this computer are there, or may be, and all would be in plain text, for anybody to read and to change: say with --tls-dir where certificates are, use the loopback, or say --%s if the network can be trusted",
				s.origin(flag), addr, InsecureFlag)
		}
	}
	return nil
}

// PerRPC returns the credentials by which calls show the token, nil if there is none.
func (s *Security) PerRPC() credentials.PerRPCCredentials {
	if s.token.Len() == 0 {
		return nil
	}
	return access.Bearer(s.token.Reveal(), !s.Tls())
}

// Showing are options by which calls show the token, if there is one.
func (s *Security) Showing() []grpc.DialOption {
	if token := s.PerRPC(); token != nil {
		return []grpc.DialOption{grpc.WithPerRPCCredentials(token)}
	}
	return nil
}

// ofManagers are credentials for calls to managers, where it is known who is one. A
// certificate for the right host is not enough: an owner on the same computer has one,
// too, and would be told tokens.
type ofManagers struct {
	credentials.TransportCredentials
	managers []secure.Identity
}

func (o ofManagers) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	over, who, err := o.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if err != nil {
		return nil, nil, err
	}
	if err := o.check(who); err != nil {
		_ = over.Close() // nothing was said
		return nil, nil, err
	}
	return over, who, nil
}

func (o ofManagers) check(who credentials.AuthInfo) error {
	info, ok := who.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return fmt.Errorf("whoever answers shows no certificate")
	}
	ids := secure.Identities(info.State.PeerCertificates[0])
	if slices.ContainsFunc(ids, func(id secure.Identity) bool {
		return slices.ContainsFunc(o.managers, func(m secure.Identity) bool { _, is := id.Match(m); return is })
	}) {
		return nil
	}
	return fmt.Errorf("whoever answers is %q, which is not a manager's certificate: want %q; --tls-servers says otherwise", ids, o.managers)
}

func (o ofManagers) Clone() credentials.TransportCredentials {
	return ofManagers{o.TransportCredentials.Clone(), o.managers}
}

// SecureAdvice is what to do about a connection that certificates or the policy have
// prevented; "" if they have not.
func SecureAdvice(err error) string {
	text := err.Error()
	switch {
	case leasehold.KindOf(err) == leasehold.ErrDenied:
		return deniedAdvice(text)
	case strings.Contains(text, "rejects the client's certificate"):
		return "The manager's log has the reason (\"connection rejected\"). 'leasehold pki show' prints the certificate's identity, expiry and issuer: do managers trust its CA?"
	case strings.Contains(text, "expired") || strings.Contains(text, "not yet valid"):
		return "Renew the certificate, and see that the clocks of both computers are right."
	case strings.Contains(text, "certificate") || strings.Contains(text, "TLS") || strings.Contains(text, "tls:"):
		return "See with 'leasehold pki show' on that computer for whom its certificate is and by whom, and here whom --tls-dir trusts."
	}
	return ""
}

func deniedAdvice(text string) string {
	switch {
	case strings.Contains(text, "has neither"):
		return "Say who we are: with a certificate, tls.crt and tls.key in --tls-dir, or with --token-file."
	case strings.Contains(text, "the token"):
		return "'leasehold token' makes another, and prints the lines that the managers' access file must have for it."
	case strings.Contains(text, "revoked"):
		return "'leasehold pki issue' makes another certificate, if there is to be one."
	}
	return "The managers' access file, that of --access, says who may do what: it has no rule for us that permits this."
}

// Who is the name in a certificate.
func Who(d *secure.Description) string {
	if len(d.Identities) == 0 {
		return d.Subject
	}
	return string(d.Identities[0])
}

// InsecureFlag is how somebody says that a network can be trusted.
const InsecureFlag = "insecure"

// insecureUsage is what it is for, for all commands that have it.
const insecureUsage = "speak plain text with other computers, too: in a network where nobody can\nread along or answer in another's place, and everybody may do everything"

// WarnOfPlainText tells the log, once, what is in plain text.
func WarnOfPlainText(open []string, log *slog.Logger) {
	if len(open) > 0 {
		log.Warn("speaking plain text with other computers, because of --"+InsecureFlag+": whoever can read along or answer in another's place can own keys", "addresses", strings.Join(open, ", "))
	}
}

// plainCredentials are for connections that are not secured: to this computer only, unless
// the network can be trusted.
func plainCredentials(trusted bool) credentials.TransportCredentials {
	if trusted {
		return insecure.NewCredentials()
	}
	return managerconn.Plaintext()
}
