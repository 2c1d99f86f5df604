package pki

import (
	"crypto/x509"
	"slices"

	"github.com/leasehold-dev/leasehold/secure"
)

// Managers returns the identities that managers have by the CAs of a file, if all of them
// are such as [Create] makes: then no other certificate is a manager's, whatever host it
// is for. Of other CAs nobody here knows how they call managers: the answer is nil.
func Managers(roots string) []secure.Identity {
	certs, err := ReadCertificates(roots)
	if err != nil {
		return nil // whoever goes by the file says what is wrong with it
	}
	var all []secure.Identity
	for _, cert := range certs {
		domain, made := domainOf(cert)
		if !made {
			return nil
		}
		p := Party{Role: Manager, Name: "{name}"}
		all = append(all, p.Identity(domain))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// domainOf returns the domain of a CA that Create has made.
func domainOf(ca *x509.Certificate) (domain string, made bool) {
	if !ca.IsCA || len(ca.URIs) != 1 || ca.URIs[0].Scheme != "spiffe" || !slices.Equal(ca.Subject.Organization, []string{organization}) {
		return "", false
	}
	domain = ca.URIs[0].Host
	return domain, slices.Equal(ca.PermittedURIDomains, []string{domain})
}
