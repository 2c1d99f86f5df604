package pkicmd

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/server/console"
)

const pkiIssueHelp = `Makes a certificate with a new key, signed by the CA that "leasehold pki init" made:
for a manager or an operator with a --name, for an owner with a --namespace and a
--name, for a lookup with a --namespace. A lookup with a --host can also serve: that is
for gateways whose callers trust the CA.

If there is a certificate of the same identity in the directory, it is renewed, for
the same hosts unless --host says otherwise. A process that uses the files takes the
new ones without a restart. One of another identity is never overwritten.

The access policy decides what the certificate is good for; the rule that it needs
is printed.`

const pkiIssueExample = `  leasehold pki issue owner --namespace sessions --name cache-c --host host6
  leasehold pki issue manager --name m1              # renew it
  leasehold pki issue lookup --namespace sessions --host gateway1 --out ./gateway1
  leasehold pki issue operator --name carol --days 7 --out ./carol`

// pkiIssue is what the flags of "pki issue" say.
type pkiIssue struct {
	dir, out        string
	namespace, name string
	hosts           []string
	days            int
	asJSON          bool
}

func newIssueCommand() *cobra.Command {
	var o pkiIssue
	cmd := &cobra.Command{
		Use:       "issue manager|owner|lookup|operator",
		Short:     "Make or renew a certificate",
		Long:      pkiIssueHelp,
		Example:   pkiIssueExample,
		Args:      cli.OneArgument("a role, manager, owner, lookup or operator"),
		ValidArgs: []cobra.Completion{"manager", "owner", "lookup", "operator"},
		RunE:      func(cmd *cobra.Command, args []string) error { return o.run(cmd, pki.Role(args[0])) },
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", defaultPKIDir, "the `directory` of the CA")
	f.StringVarP(&o.namespace, "namespace", "n", "", "the `name` of an owner's or lookup's namespace")
	f.StringVar(&o.name, "name", "", "the `name` of the manager, owner or operator")
	f.StringSliceVar(&o.hosts, "host", nil, "the `hosts` at which others call it, names or addresses (default as before, or its name)")
	f.StringVar(&o.out, "out", "", "the `directory` to write to (default its own, in that of the CA)")
	daysFlag(cmd, &o.days)
	f.BoolVar(&o.asJSON, "json", false, "print for programs")
	return cmd
}

func (o *pkiIssue) run(cmd *cobra.Command, role pki.Role) error {
	lifetime, err := lifetimeOf(o.days)
	if err != nil {
		return err
	}
	d, err := pki.Open(o.dir)
	if err != nil {
		return cli.Fail(err)
	}
	party := pki.Party{Role: role, Namespace: leasehold.Namespace(o.namespace), Name: o.name, Hosts: o.hosts}
	issued, err := d.Issue(party, o.out, time.Now(), lifetime)
	if err != nil {
		return err
	}
	document := issuedJSON(&issued)
	if o.asJSON {
		return cli.Write(cmd.OutOrStdout(), console.JSON(document))
	}
	return cli.Write(console.New(cmd.OutOrStdout()), issueText(document, pki.Rule(d.Domain(), issued.Party)))
}

func issueText(document issuedDocument, rule string) string {
	text := issuedText([]issuedDocument{document})
	if document.Renewed {
		return console.Good("renewed") + "\n\n" + text
	}
	return fmt.Sprintf("%s\n\n%s\nThe access policy must have this rule:\n%s", console.Good("issued"), text, rule)
}

const pkiRevokeHelp = `Puts certificates of the CA on its revocation list, crl.pem, which every process must
be given that is to refuse them. Processes that are given it end the connections of
whoever is on it. A certificate of the same identity that is issued later is another
one, and is not revoked.`

func newRevokeCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "revoke FILE",
		Short:   "Put a certificate on the CA's revocation list",
		Long:    pkiRevokeHelp,
		Example: "  leasehold pki revoke pki/owner/sessions/cache-a/tls.crt",
		Args:    cli.OneArgument("a file with the certificate"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := pki.Open(dir)
			if err != nil {
				return cli.Fail(err)
			}
			certs, err := pki.ReadCertificates(args[0])
			if err != nil {
				return cli.Fail(err)
			}
			file, err := d.Revoke(certs[:1], time.Now())
			if err != nil {
				return cli.Fail(err)
			}
			return cli.Write(console.New(cmd.OutOrStdout()), fmt.Sprintf(
				"%s %x, which is now on the list in %s\nCopy that to every process, as crl.pem in the directory of its --tls-dir: within seconds it counts.\n",
				console.Good("revoked"), certs[0].SerialNumber, file))
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultPKIDir, "the `directory` of the CA")
	return cmd
}
