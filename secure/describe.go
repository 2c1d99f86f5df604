package secure

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// A Description says in words whose certificate it is, until when, by whom.
type Description struct {
	Identities []Identity
	Hosts      []string // names and addresses that it may serve under
	Subject    string
	Issuer     string
	Serial     string // in hexadecimal
	NotBefore  time.Time
	NotAfter   time.Time
	CA         bool
	Client     bool // it may be shown to servers
	Server     bool // it may be shown to clients
}

// Describe says what a certificate is. Subject and Issuer come from the
// certificate as they are: quote them.
func Describe(cert *x509.Certificate) Description {
	d := Description{
		Identities: Identities(cert),
		Hosts:      slices.Clone(cert.DNSNames),
		Subject:    cert.Subject.String(),
		Issuer:     cert.Issuer.String(),
		Serial:     cert.SerialNumber.Text(16),
		NotBefore:  cert.NotBefore,
		NotAfter:   cert.NotAfter,
		CA:         cert.IsCA,
		Client:     serves(cert, x509.ExtKeyUsageClientAuth),
		Server:     serves(cert, x509.ExtKeyUsageServerAuth),
	}
	for _, ip := range cert.IPAddresses {
		d.Hosts = append(d.Hosts, ip.String())
	}
	return d
}

// serves reports whether a certificate may be used for something. One that says
// nothing about it may be used for everything.
func serves(cert *x509.Certificate, usage x509.ExtKeyUsage) bool {
	return len(cert.ExtKeyUsage)+len(cert.UnknownExtKeyUsage) == 0 ||
		slices.Contains(cert.ExtKeyUsage, usage) || slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny)
}

// Describe says who we are. Without a certificate it is empty.
func (k *Keeper) Describe() Description {
	m := k.now.Load()
	if m.cert == nil {
		return Description{}
	}
	d := Describe(m.cert.Leaf)
	d.NotAfter = m.end
	return d
}

// Check returns what somebody should mend, in sentences; nothing, if all is well.
func (k *Keeper) Check() []string {
	k.mu.Lock()
	trouble := k.trouble
	k.mu.Unlock()
	problems := k.now.Load().problems(time.Now())
	if trouble != "" {
		problems = append([]string{"the certificates on disk cannot be taken; we go on with those we have: " + trouble}, problems...)
	}
	return problems
}

// ending is when our certificate ends, or an intermediate certificate beside it.
func (m *material) ending() time.Time {
	end := m.cert.Leaf.NotAfter
	for _, c := range m.intermediates() {
		if c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	return end
}

// problems are what is wrong with the material now. The sentences do not change
// while nothing does, so that they can be told once.
func (m *material) problems(now time.Time) []string {
	var all []string
	if m.cert != nil {
		if p := ends(m.cert.Leaf, m.end, now); p != "" {
			all = append(all, "our certificate, of "+nameOf(m.cert.Leaf)+", "+p)
		}
	}
	all = append(all, m.flaws...)
	for _, root := range m.roots {
		if p := ends(root, root.NotAfter, now); p != "" {
			all = append(all, "the root "+nameOf(root)+" "+p)
		}
	}
	for _, l := range m.revoked.lists {
		switch {
		case !l.trusted:
			all = append(all, fmt.Sprintf("the revocation list of %q does not count: its issuer is none of our roots; if an intermediate CA signed it, put that CA's certificate beside it", l.issuer))
		case !l.until.IsZero() && now.After(l.until):
			all = append(all, fmt.Sprintf("the revocation list of %q should have been replaced by %s; it counts on", l.issuer, date(l.until)))
		}
	}
	return all
}

// findFlaws says why peers may refuse our certificate, but for its age. It
// verifies signatures, and is not for every poll.
func (m *material) findFlaws() []string {
	var all []string
	leaf := m.cert.Leaf
	if len(Identities(leaf)) == 0 {
		all = append(all, "our certificate has neither a URI nor a host name among its subject alternative names: it says about nobody who we are")
	}
	if m.revoked.has(leaf) {
		all = append(all, "our certificate, of "+nameOf(leaf)+", is revoked: peers refuse it; issue another")
	}
	options := x509.VerifyOptions{Roots: m.pool, Intermediates: poolOf(m.intermediates()), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}, CurrentTime: leaf.NotBefore}
	if _, err := leaf.Verify(options); err != nil {
		all = append(all, fmt.Sprintf("none of our roots leads to our own certificate, of %s: peers with the same roots refuse it (%v)", nameOf(leaf), err))
	}
	return all
}

func (m *material) intermediates() []*x509.Certificate {
	var all []*x509.Certificate
	for _, der := range m.cert.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			all = append(all, c)
		}
	}
	return all
}

// ends says that a certificate has expired, or has less than a fifth of its
// time left.
func ends(cert *x509.Certificate, end, now time.Time) string {
	switch left := end.Sub(now); {
	case left < 0:
		return "expired on " + date(end) + ": new connections fail; renew it"
	case left < end.Sub(cert.NotBefore)/5:
		return "expires on " + date(end) + ": renew it"
	}
	return ""
}
