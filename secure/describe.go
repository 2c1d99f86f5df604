package secure

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// A Description is a summary of a certificate.
type Description struct {
	Identities []Identity
	Hosts      []string // names and addresses for which it is valid
	Subject    string
	Issuer     string
	Serial     string // hexadecimal
	NotBefore  time.Time
	NotAfter   time.Time
	CA         bool
	Client     bool // valid for clients
	Server     bool // valid for servers
}

// Describe returns the summary of a certificate. Subject and Issuer are unfiltered text:
// quote them.
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
		Client:     allowsUsage(cert, x509.ExtKeyUsageClientAuth),
		Server:     allowsUsage(cert, x509.ExtKeyUsageServerAuth),
	}
	for _, ip := range cert.IPAddresses {
		d.Hosts = append(d.Hosts, ip.String())
	}
	return d
}

// allowsUsage reports whether a certificate has an extended key usage. One without any may
// be used for everything.
func allowsUsage(cert *x509.Certificate, usage x509.ExtKeyUsage) bool {
	return len(cert.ExtKeyUsage)+len(cert.UnknownExtKeyUsage) == 0 ||
		slices.Contains(cert.ExtKeyUsage, usage) || slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny)
}

// Describe returns the summary of the process's certificate; empty without one.
func (k *Keeper) Describe() Description {
	m := k.now.Load()
	if m.cert == nil {
		return Description{}
	}
	d := Describe(m.cert.Leaf)
	d.NotAfter = m.end
	return d
}

// Check returns the current problems, for operators; nil if there are none.
func (k *Keeper) Check() []string {
	k.mu.Lock()
	problem := k.problem
	k.mu.Unlock()
	problems := k.now.Load().problems(time.Now())
	if problem != "" {
		problems = append([]string{filesRejected + ": " + problem}, problems...)
	}
	return problems
}

// certEnd returns when the process's certificate, or the first of its intermediate
// certificates, expires.
func (m *material) certEnd() time.Time {
	end := m.cert.Leaf.NotAfter
	for _, c := range m.intermediates() {
		if c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	return end
}

// problems returns the problems of the material. The text of a problem is stable, so that
// it can be logged once.
func (m *material) problems(now time.Time) []string {
	var all []string
	if m.cert != nil {
		if p := expiryProblem(m.cert.Leaf, m.end, now); p != "" {
			all = append(all, "the process's certificate "+nameOf(m.cert.Leaf)+" "+p)
		}
	}
	all = append(all, m.flaws...)
	for _, root := range m.roots {
		if p := expiryProblem(root, root.NotAfter, now); p != "" {
			all = append(all, "the root "+nameOf(root)+" "+p)
		}
	}
	for _, l := range m.revoked.lists {
		switch {
		case !l.trusted:
			all = append(all, fmt.Sprintf("the revocation list of %q is ignored: its issuer is not a trusted root; if it is an intermediate CA, add its certificate to the file", l.issuer))
		case !l.until.IsZero() && now.After(l.until):
			all = append(all, fmt.Sprintf("the revocation list of %q is outdated since %s and stays in force: replace it", l.issuer, date(l.until)))
		}
	}
	return all
}

// findFlaws returns the reasons, other than its age, why peers may reject the process's
// certificate. It verifies signatures: too expensive for every poll.
func (m *material) findFlaws() []string {
	var all []string
	leaf := m.cert.Leaf
	if len(Identities(leaf)) == 0 {
		all = append(all, "the process's certificate has no identity: it needs a URI or a host name as subject alternative name")
	}
	if m.revoked.has(leaf) {
		all = append(all, "the process's certificate "+nameOf(leaf)+" is revoked and peers reject it: issue another")
	}
	options := x509.VerifyOptions{Roots: m.pool, Intermediates: poolOf(m.intermediates()), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}, CurrentTime: leaf.NotBefore}
	if _, err := leaf.Verify(options); err != nil {
		all = append(all, fmt.Sprintf("the process's certificate %s leads to none of the roots: peers with the same roots reject it (%v)", nameOf(leaf), err))
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

// expiryProblem describes a certificate that has expired, or has less than a fifth of its
// validity left; otherwise it is "".
func expiryProblem(cert *x509.Certificate, end, now time.Time) string {
	switch left := end.Sub(now); {
	case left < 0:
		return "expired on " + date(end) + ": new connections fail; renew it"
	case left < end.Sub(cert.NotBefore)/5:
		return "expires on " + date(end) + ": renew it"
	}
	return ""
}
