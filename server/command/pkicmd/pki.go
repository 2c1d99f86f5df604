package pkicmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/server/console"
)

const pkiHelp = `With TLS, whoever connects shows a certificate that says who it is. These commands
are a small certification authority for those who have none: "init" makes all that
a first setup needs, "issue" makes and renews one certificate, "revoke" takes one
back, "show" says what is in a file.

Certificates of another CA do as well: an identity is a URI or a host name among
the subject alternative names of a certificate, and the access policy says what it
may do.`

// New returns the command.
func New() *cobra.Command {
	return cli.Group("pki", "Make certificates for managers, owners, lookups and operators", pkiHelp,
		newInitCommand(), newIssueCommand(), newRevokeCommand(), newShowCommand())
}

const (
	defaultPKIDir = "pki"
	maxDays       = 3650
)

// daysFlag adds the flag for how long certificates are valid.
func daysFlag(cmd *cobra.Command, days *int) {
	cmd.Flags().IntVar(days, "days", int(pki.LeafLifetime/(24*time.Hour)), "for how many `days` certificates are valid")
}

func lifetimeOf(days int) (time.Duration, error) {
	if days < 1 || days > maxDays {
		return 0, fmt.Errorf("--days %d: want 1 to %d", days, maxDays)
	}
	return time.Duration(days) * 24 * time.Hour, nil
}

// An issuedDocument is a certificate in what "pki init" and "pki issue" print.
type issuedDocument struct {
	Identity string    `json:"identity"`
	Role     string    `json:"role"`
	Dir      string    `json:"dir"`
	Hosts    []string  `json:"hosts"`
	NotAfter time.Time `json:"not_after"`
	Renewed  bool      `json:"renewed"`
}

func issuedJSON(i *pki.Issued) issuedDocument {
	return issuedDocument{
		Identity: string(i.Identity),
		Role:     string(i.Party.Role),
		Dir:      i.Dir,
		Hosts:    append([]string{}, i.Party.Hosts...),
		NotAfter: i.NotAfter.UTC(),
		Renewed:  i.Renewed,
	}
}

func issuedText(all []issuedDocument) string {
	var rows [][]string
	for _, i := range all {
		rows = append(rows, []string{i.Identity, i.Dir, i.NotAfter.Format(time.DateOnly), console.OrDash(strings.Join(i.Hosts, " "))})
	}
	return console.Table([]console.Column{console.Left("WHO"), console.Left("FILES IN"), console.Left("UNTIL"), console.Left("SERVES AT")}, rows)
}
