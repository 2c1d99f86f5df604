package cli

import (
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secure"
)

// SecureAdvice is what to do about a connection that certificates or the policy have
// prevented; "" if they have not.
func SecureAdvice(err error) string {
	text := err.Error()
	switch {
	case leasehold.KindOf(err) == leasehold.ErrDenied:
		return deniedAdvice(text)
	case strings.Contains(text, "refuses our certificate"):
		return "The manager's log says why (\"a connection was refused\"). 'leasehold pki show' says whose our certificate is, until when and by whom: do managers trust its CA?"
	case strings.Contains(text, "expired") || strings.Contains(text, "not yet valid"):
		return "Renew the certificate, and see that the clocks of both computers are right."
	case strings.Contains(text, "certificate") || strings.Contains(text, "TLS") || strings.Contains(text, "tls:"):
		return "See with 'leasehold pki show' on that computer for whom its certificate is and by whom, and here whom --tls-dir trusts."
	}
	return ""
}

// deniedAdvice is what to do about a manager's refusal.
func deniedAdvice(text string) string {
	switch {
	case strings.Contains(text, "was neither"):
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
