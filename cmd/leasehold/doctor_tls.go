package main

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/hostport"
	"github.com/leasehold-dev/leasehold/secure"
)

// soon is how long before their end certificates should have been replaced.
const soon = 14 * 24 * time.Hour

// A tlsExam is what is known about who we are.
type tlsExam struct {
	used  bool
	now   time.Time
	own   secure.Description // empty if we show a token
	mend  []string           // what the keeper says
	plain []string           // managers elsewhere that are spoken to in plain text

	policy string // a file that was to be looked at; "" if none
	broken error  // what is wrong with it
}

// examineTLS looks at our own files.
func (o *doctorOptions) examineTLS() tlsExam {
	e := tlsExam{used: o.keeper != nil, now: time.Now(), policy: o.policy}
	if o.keeper != nil {
		e.own, e.mend = o.keeper.Describe(), o.keeper.Check()
	} else {
		for _, addr := range o.managers {
			if !hostport.Loopback(addr) {
				e.plain = append(e.plain, addr)
			}
		}
	}
	if e.policy != "" {
		e.broken = readPolicy(e.policy)
	}
	return e
}

// readPolicy reports what is wrong with an access file.
func readPolicy(file string) error {
	p, err := access.Open(access.Config{File: file, Logger: slog.New(slog.DiscardHandler)}) // what is wrong is returned
	if err == nil {
		p.Close()
	}
	return err
}

// shownBy is the certificate of whoever has answered a call; nil in plain text.
func shownBy(p *peer.Peer) *x509.Certificate {
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return nil
	}
	return info.State.PeerCertificates[0]
}

// diagnoseOwnTLS says what to make of our own files.
func diagnoseOwnTLS(e *tlsExam) []finding {
	var out []finding
	switch {
	case len(e.plain) > 0:
		out = append(out, finding{
			"tls", "", hint, "connections to " + strings.Join(e.plain, ", ") + " are in plain text: whoever is on the network can own keys",
			"Make certificates with 'leasehold pki init', and give managers, owners and lookups theirs.",
		})
	case !e.used:
		out = append(out, finding{"tls", "", skipped, "connections are not encrypted, so there are no certificates to check", ""})
	case e.own.NotAfter.IsZero():
		out = append(out, finding{"tls", thisComputer, fine, "we show no certificate of our own", ""})
	default:
		out = append(out, diagnoseCertificate(thisComputer, &e.own, e.now))
	}
	for _, problem := range e.mend {
		out = append(out, finding{"tls", thisComputer, hint, problem, ""})
	}
	switch {
	case e.policy == "":
	case e.broken != nil:
		out = append(out, finding{"access", e.policy, wrong, oneLine(e.broken), "Managers that run go on with the last one that was in order; none starts with this one."})
	default:
		out = append(out, finding{"access", e.policy, fine, "it can be read, and makes sense", ""})
	}
	return out
}

// diagnoseCertificate says whether a certificate lasts.
func diagnoseCertificate(whose string, d *secure.Description, now time.Time) finding {
	const renew = "Renew it, with 'leasehold pki issue' if that made it: whoever uses the files takes the new ones without a restart."
	left := d.NotAfter.Sub(now)
	days := int(left / (24 * time.Hour))
	switch until := d.NotAfter.UTC().Format(time.DateOnly); {
	case now.Before(d.NotBefore):
		return finding{"tls", whose, wrong, fmt.Sprintf("the certificate of %s is not valid before %s", who(d), d.NotBefore.UTC().Format(time.RFC3339)), "Is the clock of this computer right?"}
	case left <= 0:
		return finding{"tls", whose, wrong, fmt.Sprintf("the certificate of %s has expired on %s", who(d), until), renew}
	case left < soon:
		return finding{"tls", whose, hint, fmt.Sprintf("the certificate of %s expires on %s, in %s", who(d), until, counted(days, "day")), renew}
	case len(d.Identities) == 0:
		return finding{"tls", whose, wrong, "the certificate says about nobody who that is: it has no URI and no host name", "Have it made with a subject alternative name."}
	default:
		return finding{"tls", whose, fine, fmt.Sprintf("%s, until %s", who(d), until), ""}
	}
}

func who(d *secure.Description) string {
	if len(d.Identities) == 0 {
		return d.Subject
	}
	return string(d.Identities[0])
}

// diagnoseShown says what to make of the certificates that managers have shown.
func diagnoseShown(e *exam) []finding {
	var out []finding
	for _, m := range e.managers {
		if m.shown != nil {
			d := secure.Describe(m.shown)
			out = append(out, diagnoseCertificate(m.addr, &d, e.tls.now))
		}
	}
	return out
}

// secureAdvice is what to do about a connection that certificates or the policy have
// prevented; "" if they have not.
func secureAdvice(err error) string {
	text := err.Error()
	switch {
	case leasehold.KindOf(err) == leasehold.Denied:
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
