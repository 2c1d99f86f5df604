package secure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

const opTrust = "trust peer"

// verifyServer verifies a server's certificate. crypto/tls cannot do it, because the roots
// of its config cannot change.
func (k *Keeper) verifyServer(state *tls.ConnectionState, host string, servers []Identity) error {
	m := k.now.Load()
	leaf, chains, err := m.chains(k.cfg.Roots, state)
	if err == nil {
		err = m.checkPeer(leaf, chains)
	}
	if err == nil {
		err = checkServerName(leaf, host, servers)
	}
	if err != nil {
		return leasehold.Errorf(opTrust, leasehold.ErrInvalid, host, "%w", err)
	}
	return nil
}

func (m *material) chains(file string, state *tls.ConnectionState) (*x509.Certificate, [][]*x509.Certificate, error) {
	if len(state.PeerCertificates) == 0 {
		return nil, nil, errors.New("the server sent no certificate")
	}
	leaf := state.PeerCertificates[0]
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots:         m.pool,
		Intermediates: poolOf(state.PeerCertificates[1:]),
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, nil, explain(leaf, file, err)
	}
	return leaf, chains, nil
}

func explain(leaf *x509.Certificate, file string, err error) error {
	var (
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("the certificate of %s, issued by %q, leads to none of the roots in %s: %w", nameOf(leaf), clip(leaf.Issuer.String()), file, err)
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return fmt.Errorf("the certificate of %s is not for servers: its extended key usage must have server authentication: %w", nameOf(leaf), err)
	}
	return fmt.Errorf("the certificate of %s: %w", nameOf(leaf), err)
}

// verifyClient makes the checks of a client's certificate that crypto/tls does not. The
// ClientAuth decides whether a certificate is required.
func (m *material) verifyClient(state *tls.ConnectionState, clients []Identity) error {
	if len(state.PeerCertificates) == 0 {
		return nil
	}
	leaf := state.PeerCertificates[0]
	err := m.checkPeer(leaf, state.VerifiedChains)
	if err == nil && len(clients) > 0 && !oneOf(leaf, clients) {
		err = fmt.Errorf("the client is %s, want %s", names(Identities(leaf)), names(clients))
	}
	if err != nil {
		return leasehold.Errorf(opTrust, leasehold.ErrInvalid, strings.Trim(nameOf(leaf), `"`), "%w", err)
	}
	return nil
}

// checkPeer makes the checks that are common to clients and servers, after a chain to a
// root has been found.
func (m *material) checkPeer(leaf *x509.Certificate, chains [][]*x509.Certificate) error {
	if err := checkLeaf(leaf); err != nil {
		return fmt.Errorf("the certificate of %s: %w", nameOf(leaf), err)
	}
	var revoked *x509.Certificate
	for _, chain := range chains {
		place := slices.IndexFunc(chain, m.revoked.has)
		if place < 0 {
			return nil
		}
		revoked = chain[place]
	}
	if revoked == nil {
		return fmt.Errorf("the certificate of %s was not verified", nameOf(leaf))
	}
	return fmt.Errorf("the certificate of %s with serial number %x was revoked by its issuer %q", nameOf(revoked), revoked.SerialNumber, clip(revoked.Issuer.String()))
}

// checkServerName requires one of the identities, or the dialled host if there are none.
func checkServerName(leaf *x509.Certificate, host string, servers []Identity) error {
	ids := Identities(leaf)
	if len(servers) > 0 {
		if !oneOf(leaf, servers) {
			return fmt.Errorf("the server is %s, want %s", names(ids), names(servers))
		}
		return nil
	}
	if host == "" {
		return errors.New("the dialled address cannot be verified with ClientTLS: dial a name, use Keeper.DialTLS, or set Servers")
	}
	err := leaf.VerifyHostname(host)
	if err == nil {
		return nil
	}
	if len(leaf.DNSNames)+len(leaf.IPAddresses) == 0 && len(leaf.URIs) > 0 {
		return fmt.Errorf("the server is %s, whose certificate has no host names, as usual with SPIFFE: set Servers to that identity, or issue a certificate with the host name: %w", names(ids), err)
	}
	return fmt.Errorf("the certificate of %s is not for this host: dial a host name of the certificate, set Servers, or issue one with this name: %w", nameOf(leaf), err)
}

func oneOf(leaf *x509.Certificate, patterns []Identity) bool {
	return slices.ContainsFunc(Identities(leaf), func(id Identity) bool {
		return slices.ContainsFunc(patterns, func(pattern Identity) bool {
			_, ok := id.Match(pattern)
			return ok
		})
	})
}

func names(ids []Identity) string {
	const most = 4
	if len(ids) == 0 {
		return "unknown (its certificate has no identity)"
	}
	var all []string
	for _, id := range ids[:min(most, len(ids))] {
		all = append(all, clip(string(id)))
	}
	text := strings.Join(all, " or ")
	if more := len(ids) - most; more > 0 {
		text += fmt.Sprintf(" or %d more", more)
	}
	return text
}

// hostOf returns the host of an address with or without a port.
func hostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return strings.Trim(addr, "[]")
}
