package doctor

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

// soon is the remaining validity below which a certificate should be renewed.
const soon = 14 * 24 * time.Hour

// A tlsExam holds the identity and the TLS settings of this process.
type tlsExam struct {
	used  bool
	now   time.Time
	own   secure.Description // empty without a certificate
	mend  []string           // problems that the keeper reports
	plain []string           // plaintext connections to other computers

	policy string // the policy file to check; "" if none
	broken error  // of reading it
}

func readPolicy(file string) error {
	p, err := access.Open(access.Config{File: file, Logger: slog.New(slog.DiscardHandler)}) // errors are returned
	if err == nil {
		p.Close()
	}
	return err
}

// shownBy returns the server's certificate of a call; nil for plaintext.
func shownBy(p *peer.Peer) *x509.Certificate {
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return nil
	}
	return info.State.PeerCertificates[0]
}

func diagnoseOwnTLS(e *tlsExam) []finding {
	var out []finding
	switch {
	case len(e.plain) > 0:
		out = append(out, finding{
			"tls", "", Hint, "connections to " + strings.Join(e.plain, ", ") + " are plaintext: anyone on the network can become an owner of keys",
			"Create certificates with 'leasehold pki init' for managers, owners and lookups.",
		})
	case !e.used:
		out = append(out, finding{"tls", "", skipped, "connections are not encrypted, so there are no certificates to check", ""})
	case e.own.NotAfter.IsZero():
		out = append(out, finding{"tls", thisComputer, Fine, "no client certificate in use", ""})
	default:
		out = append(out, diagnoseCertificate(thisComputer, &e.own, e.now))
	}
	for _, problem := range e.mend {
		out = append(out, finding{"tls", thisComputer, Hint, problem, ""})
	}
	switch {
	case e.policy == "":
	case e.broken != nil:
		out = append(out, finding{"access", e.policy, Wrong, cli.OneLine(e.broken), "Running managers keep the last valid policy; no manager can start with this one."})
	default:
		out = append(out, finding{"access", e.policy, Fine, "the policy is valid", ""})
	}
	return out
}

func diagnoseCertificate(whose string, d *secure.Description, now time.Time) finding {
	const renew = "Renew it, for example with 'leasehold pki issue': processes reload the files without a restart."
	left := d.NotAfter.Sub(now)
	days := int(left / (24 * time.Hour))
	switch until := d.NotAfter.UTC().Format(time.DateOnly); {
	case now.Before(d.NotBefore):
		return finding{"tls", whose, Wrong, fmt.Sprintf("the certificate of %s is not valid before %s", cli.Who(d), d.NotBefore.UTC().Format(time.RFC3339)), "Check the clock of this computer."}
	case left <= 0:
		return finding{"tls", whose, Wrong, fmt.Sprintf("the certificate of %s expired on %s", cli.Who(d), until), renew}
	case left < soon:
		return finding{"tls", whose, Hint, fmt.Sprintf("the certificate of %s expires on %s, in %s", cli.Who(d), until, console.Counted(days, "day")), renew}
	case len(d.Identities) == 0:
		return finding{"tls", whose, Wrong, "the certificate has no identity, neither a URI nor a host name", "Create one with a subject alternative name."}
	default:
		return finding{"tls", whose, Fine, fmt.Sprintf("%s, until %s", cli.Who(d), until), ""}
	}
}

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
