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

// Security holds the flags, environment variables and file settings for TLS, identity and trust.
// All commands that listen or dial share them.
type Security struct {
	Dir                    string
	cert, key, Ca, Revoked string
	Servers                []string
	Insecure               bool     // plaintext is allowed on all networks
	Exposed                []string // plaintext addresses outside this computer

	tokenFile string // only for commands that call managers
	token     secret.Text

	origin func(flag string) string
}

// AddFlags adds the flags that all commands share.
func (s *Security) AddFlags(f *pflag.FlagSet, origin func(flag string) string) {
	s.origin = origin
	f.StringVar(&s.Dir, "tls-dir", "", "`directory` with the certificate tls.crt, its key tls.key, the trusted CAs ca.crt, and\noptionally the revocation list crl.pem, as created by 'leasehold pki'; reloaded when\na file changes")
	f.StringVar(&s.cert, "tls-cert", "", "certificate `file`, instead of tls.crt in --tls-dir")
	f.StringVar(&s.key, "tls-key", "", "private key `file`, instead of tls.key in --tls-dir")
	f.StringVar(&s.Ca, "tls-ca", "", "`file` with the trusted CA certificates, instead of ca.crt in --tls-dir")
	f.StringVar(&s.Revoked, "tls-revoked", "", "`file` with certificate revocation lists, instead of crl.pem in --tls-dir")
	f.StringSliceVar(&s.Servers, "tls-servers", nil, "`identities` accepted for managers, such as spiffe://example.org/manager/{name}\n(default: the certificate must match the host name)")
	f.BoolVar(&s.Insecure, InsecureFlag, false, insecureUsage)
}

// AddToken adds the flag for a token file. The token itself is never a flag: other users of the
// computer can read command lines.
func (s *Security) AddToken(f *pflag.FlagSet) {
	f.StringVar(&s.tokenFile, "token-file", "", "`file` with a bearer token for the managers, readable only by its owner")
}

// Tls reports whether connections use TLS.
func (s *Security) Tls() bool {
	return s.Dir != "" || s.Ca != "" || s.cert != "" || s.key != ""
}

// Validate validates the settings and reads the token.
func (s *Security) Validate() error {
	for flag, needs := range map[string]bool{"tls-revoked": s.Revoked != "", "tls-servers": len(s.Servers) > 0} {
		if needs && !s.Tls() {
			return fmt.Errorf("%s requires TLS: name the certificates with --tls-dir", s.origin(flag))
		}
	}
	for _, id := range s.Servers {
		if err := secure.Identity(id).Validate(); err != nil {
			return fmt.Errorf("%s: %w", s.origin("tls-servers"), err)
		}
	}
	switch {
	case s.Tls() && s.Dir == "" && s.Ca == "":
		return errors.New("--tls-ca, the file with the trusted CA certificates, is missing: set it, or name a directory with --tls-dir")
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

// Config returns the files that the flags name.
func (s *Security) Config(log *slog.Logger) secure.Config {
	var cfg secure.Config
	if s.Dir != "" {
		cfg = secure.Dir(s.Dir)
	}
	cfg.Cert, cfg.Key, cfg.Roots = cmp.Or(s.cert, cfg.Cert), cmp.Or(s.key, cfg.Key), cmp.Or(s.Ca, cfg.Roots)
	if s.Revoked != "" {
		cfg.Revoked, cfg.RevokedLater = s.Revoked, false // an explicitly named file must exist
	}
	cfg.Logger = log
	for _, id := range s.Servers {
		cfg.Servers = append(cfg.Servers, secure.Identity(id))
	}
	if s.cert == "" && s.key == "" && ifThere(cfg.Cert) == "" && ifThere(cfg.Key) == "" {
		cfg.Cert, cfg.Key = "", "" // the directory of a client that authenticates by token
	}
	return cfg
}

func ifThere(file string) string {
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// Open reads the certificates. The keeper is nil for plaintext. The caller closes it.
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

// OpenServer is Open for a process that accepts connections, which requires a certificate.
func (s *Security) OpenServer(log *slog.Logger) (*secure.Keeper, error) {
	k, err := s.Open(log)
	if err != nil || k == nil {
		return k, err
	}
	if k.Expires().IsZero() {
		k.Close()
		return nil, Fail(fmt.Errorf("a server needs a certificate: %s has no tls.crt and tls.key, and --tls-cert and --tls-key are not set", cmp.Or(s.Dir, filepath.Dir(s.Ca))))
	}
	if err := CanServe(k); err != nil {
		k.Close()
		return nil, Fail(err)
	}
	return k, nil
}

// CanServe rejects a certificate that every client would reject.
func CanServe(k *secure.Keeper) error {
	if d := k.Describe(); !d.Server {
		return fmt.Errorf("the certificate of %s is for clients only, and clients would reject it\nCreate a server certificate with 'leasehold pki issue --host'.", Who(&d))
	}
	return nil
}

// Dialling returns the credentials for calls to managers. Plaintext is limited to this computer
// unless --insecure is set. If "leasehold pki" created the CA, only a certificate with a
// manager's identity is accepted.
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

// Expose validates the addresses of a flag: TLS, a loopback address or --insecure is required.
// It records the plaintext addresses for a warning.
func (s *Security) Expose(flag string, secured bool, addrs ...string) error {
	for _, addr := range addrs {
		switch {
		case addr == "" || secured || address.Loopback(addr):
		case s.Insecure:
			s.Exposed = append(s.Exposed, addr)
		default:
			return fmt.Errorf("%s %s is not a loopback address, and plaintext there can be read and changed by other computers\nConfigure TLS with --tls-dir, use a loopback address, or pass --%s if the network is trusted.",
				s.origin(flag), addr, InsecureFlag)
		}
	}
	return nil
}

// PerRPC returns the credentials that send the token; nil without a token.
func (s *Security) PerRPC() credentials.PerRPCCredentials {
	if s.token.Len() == 0 {
		return nil
	}
	return access.Bearer(s.token.Reveal(), !s.Tls())
}

// Showing returns the dial options that send the token, if there is one.
func (s *Security) Showing() []grpc.DialOption {
	if token := s.PerRPC(); token != nil {
		return []grpc.DialOption{grpc.WithPerRPCCredentials(token)}
	}
	return nil
}

// ofManagers are the credentials for calls to managers whose identities are known. A matching
// host name is not enough: an owner on the same computer has such a certificate, too, and could
// receive tokens.
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
		_ = over.Close() // no data was sent
		return nil, nil, err
	}
	return over, who, nil
}

func (o ofManagers) check(who credentials.AuthInfo) error {
	info, ok := who.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return fmt.Errorf("the server presents no certificate")
	}
	ids := secure.Identities(info.State.PeerCertificates[0])
	if slices.ContainsFunc(ids, func(id secure.Identity) bool {
		return slices.ContainsFunc(o.managers, func(m secure.Identity) bool { _, is := id.Match(m); return is })
	}) {
		return nil
	}
	return fmt.Errorf("the server presents %q, which is not a manager's certificate: want %q; --tls-servers accepts other identities", ids, o.managers)
}

func (o ofManagers) Clone() credentials.TransportCredentials {
	return ofManagers{o.TransportCredentials.Clone(), o.managers}
}

// SecureAdvice returns the advice for an error of TLS or access control; "" for other errors.
func SecureAdvice(err error) string {
	text := err.Error()
	switch {
	case leasehold.KindOf(err) == leasehold.ErrDenied:
		return deniedAdvice(text)
	case strings.Contains(text, "rejects the client's certificate"):
		return "The manager logs the reason (\"connection rejected\"). Check subject, expiry and issuer with 'leasehold pki show', and whether managers trust this CA."
	case strings.Contains(text, "expired") || strings.Contains(text, "not yet valid"):
		return "Check the clocks of both computers, and renew the certificate if it has expired."
	case strings.Contains(text, "certificate") || strings.Contains(text, "TLS") || strings.Contains(text, "tls:"):
		return "Check the server's certificate with 'leasehold pki show' on its computer, and the trusted CAs in --tls-dir here."
	}
	return ""
}

func deniedAdvice(text string) string {
	switch {
	case strings.Contains(text, "has neither"):
		return "Authenticate with a certificate (tls.crt and tls.key in --tls-dir) or with --token-file."
	case strings.Contains(text, "the token"):
		return "Create a token with 'leasehold token', and add the lines it prints to the managers' access file."
	case strings.Contains(text, "revoked"):
		return "Create a new certificate with 'leasehold pki issue'."
	}
	return "The managers' access file (--access) has no rule that grants this identity the permission."
}

// Who returns the identity in a certificate, or else its subject.
func Who(d *secure.Description) string {
	if len(d.Identities) == 0 {
		return d.Subject
	}
	return string(d.Identities[0])
}

// InsecureFlag is the name of the flag that allows plaintext on all networks.
const InsecureFlag = "insecure"

const insecureUsage = "allow plaintext connections to other computers: only for networks where no one can\nread or spoof traffic, and every client may do everything"

// WarnOfPlainText logs the plaintext addresses once.
func WarnOfPlainText(open []string, log *slog.Logger) {
	if len(open) > 0 {
		log.Warn("plaintext connections to other computers, because of --"+InsecureFlag+": anyone who can read or spoof this traffic can become an owner of keys", "addresses", strings.Join(open, ", "))
	}
}

// plainCredentials are for plaintext connections: only to this computer, unless the network is
// trusted.
func plainCredentials(trusted bool) credentials.TransportCredentials {
	if trusted {
		return insecure.NewCredentials()
	}
	return managerconn.Plaintext()
}
