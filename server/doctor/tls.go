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

func diagnoseOwnTLS(e *tlsExam) []finding {
	var out []finding
	switch {
	case len(e.plain) > 0:
		out = append(out, finding{
			"tls", "", Hint, "connections to " + strings.Join(e.plain, ", ") + " are in plain text: whoever is on the network can own keys",
			"Make certificates with 'leasehold pki init', and give managers, owners and lookups theirs.",
		})
	case !e.used:
		out = append(out, finding{"tls", "", skipped, "connections are not encrypted, so there are no certificates to check", ""})
	case e.own.NotAfter.IsZero():
		out = append(out, finding{"tls", thisComputer, Fine, "we show no certificate of our own", ""})
	default:
		out = append(out, diagnoseCertificate(thisComputer, &e.own, e.now))
	}
	for _, problem := range e.mend {
		out = append(out, finding{"tls", thisComputer, Hint, problem, ""})
	}
	switch {
	case e.policy == "":
	case e.broken != nil:
		out = append(out, finding{"access", e.policy, Wrong, cli.OneLine(e.broken), "Managers that run go on with the last one that was in order; none starts with this one."})
	default:
		out = append(out, finding{"access", e.policy, Fine, "it can be read, and makes sense", ""})
	}
	return out
}

func diagnoseCertificate(whose string, d *secure.Description, now time.Time) finding {
	const renew = "Renew it, with 'leasehold pki issue' if that made it: whoever uses the files takes the new ones without a restart."
	left := d.NotAfter.Sub(now)
	days := int(left / (24 * time.Hour))
	switch until := d.NotAfter.UTC().Format(time.DateOnly); {
	case now.Before(d.NotBefore):
		return finding{"tls", whose, Wrong, fmt.Sprintf("the certificate of %s is not valid before %s", cli.Who(d), d.NotBefore.UTC().Format(time.RFC3339)), "Is the clock of this computer right?"}
	case left <= 0:
		return finding{"tls", whose, Wrong, fmt.Sprintf("the certificate of %s has expired on %s", cli.Who(d), until), renew}
	case left < soon:
		return finding{"tls", whose, Hint, fmt.Sprintf("the certificate of %s expires on %s, in %s", cli.Who(d), until, console.Counted(days, "day")), renew}
	case len(d.Identities) == 0:
		return finding{"tls", whose, Wrong, "the certificate says about nobody who that is: it has no URI and no host name", "Have it made with a subject alternative name."}
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
