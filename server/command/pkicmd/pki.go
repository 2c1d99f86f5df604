// Package pkicmd contains the subcommands "pki" and "token".
package pkicmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

const pkiHelp = `With TLS, every client authenticates by a certificate. These commands are a small
certification authority for deployments without one: "init" creates everything for a
first setup, "issue" creates or renews one certificate, "revoke" revokes one, "show"
prints the content of a file.

Certificates of another CA work as well: an identity is a URI or a host name among the
subject alternative names of a certificate, and the access policy grants permissions to
it.`

// New returns the command.
func New() *cobra.Command {
	return cli.Group("pki", "Create certificates for managers, owners, lookups and operators", pkiHelp,
		newInitCommand(), newIssueCommand(), newRevokeCommand(), newShowCommand())
}

const (
	defaultPKIDir = "pki"
	maxDays       = 3650
)

func daysFlag(cmd *cobra.Command, days *int) {
	cmd.Flags().IntVar(days, "days", int(pki.LeafLifetime/(24*time.Hour)), "validity of certificates in `days`")
}

func lifetimeOf(days int) (time.Duration, error) {
	if days < 1 || days > maxDays {
		return 0, fmt.Errorf("--days %d: want 1 to %d", days, maxDays)
	}
	return time.Duration(days) * 24 * time.Hour, nil
}

// An issuedDocument is a certificate in the output of "pki init" and "pki issue".
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
	return console.Table([]console.Column{console.Left("WHO"), console.Left("FILES IN"), console.Left("UNTIL"), console.Left("SERVES AT")},
		console.Rows(all, func(i issuedDocument) []string {
			return []string{i.Identity, i.Dir, i.NotAfter.Format(time.DateOnly), console.OrDash(strings.Join(i.Hosts, " "))}
		}))
}

const pkiInitHelp = `Creates a directory with a CA, a certificate and key for each manager, owner, lookup and
operator that a flag names, and access.yaml, a policy that grants each of them the
permissions of its role, and nothing to other clients.

A manager or owner has the hosts at which clients connect to it: name=host, or
name=host+host for several; without a host, the name is the host. Managers are also valid
for localhost. Lookups are per namespace: each namespace of --owners has one.

Each directory contains the three files of one process: tls.crt, tls.key and ca.crt. Copy
it to its computer and keep it private; keep ca.key away from servers. Certificates are
valid for --days, the CA for ten years. Existing files are not overwritten.`

const pkiInitExample = `  leasehold pki init                                        # one manager, on this computer
  leasehold pki init --domain example.org --managers m1=host1,m2=host2,m3=host3 \
      --owners sessions/cache-a=host4,sessions/cache-b=host5 --operators alice,bob`

// pkiInit holds the flags of "pki init".
type pkiInit struct {
	dir, domain        string
	managers, owners   []string
	lookups, operators []string
	days               int
	asJSON             bool
}

func newInitCommand() *cobra.Command {
	var o pkiInit
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "Create a CA, the certificates of a deployment, and the matching access policy",
		Long:    pkiInitHelp,
		Example: pkiInitExample,
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", defaultPKIDir, "new `directory`")
	f.StringVar(&o.domain, "domain", "leasehold.internal", "`domain` of all identities, spiffe://domain/role/...; it need not exist in DNS")
	f.StringSliceVar(&o.managers, "managers", []string{"m1=localhost"}, "managers, comma-separated `name=host`")
	f.StringSliceVar(&o.owners, "owners", nil, "owners, comma-separated `namespace/name=host`")
	f.StringSliceVar(&o.lookups, "lookups", nil, "`namespaces` with a lookup certificate, besides those of --owners")
	f.StringSliceVar(&o.operators, "operators", []string{"admin"}, "`names` of the operators")
	daysFlag(cmd, &o.days)
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	return cmd
}

// A pkiDocument is the output of "pki init --json".
type pkiDocument struct {
	Dir      string           `json:"dir"`
	Domain   string           `json:"domain"`
	NotAfter time.Time        `json:"not_after"` // of the CA
	Policy   string           `json:"policy"`
	Issued   []issuedDocument `json:"issued"`
}

func (o *pkiInit) run(cmd *cobra.Command) error {
	lifetime, err := lifetimeOf(o.days)
	if err != nil {
		return err
	}
	parties, err := o.parties()
	if err != nil {
		return err
	}
	d, issued, err := pki.Create(o.dir, o.domain, parties, time.Now(), lifetime)
	if err != nil {
		return cli.Fail(err)
	}
	document := pkiDocument{Dir: o.dir, Domain: d.Domain(), NotAfter: d.Authority().NotAfter.UTC(), Policy: d.Path("access.yaml")}
	for i := range issued {
		document.Issued = append(document.Issued, issuedJSON(&issued[i]))
	}
	return cli.PrintAs(cmd, o.asJSON, document, document.text)
}

func (d pkiDocument) text() string {
	return fmt.Sprintf("%s a CA for %s, valid until %s\n\n%s\nThe access policy is %s.\nCopy each directory to the computer of its process. Keep %s secret: it can issue\nany identity. \"leasehold pki issue\" renews a certificate; processes reload it without a restart.\n",
		console.Good("created"), d.Domain, d.NotAfter.Format(time.DateOnly), issuedText(d.Issued), d.Policy, d.Dir+"/ca.key")
}

func (o *pkiInit) parties() ([]pki.Party, error) {
	var all []pki.Party
	for _, text := range o.managers {
		name, hosts := nameAndHosts(text)
		all = append(all, pki.Party{Role: pki.Manager, Name: name, Hosts: hosts})
	}
	lookups := o.lookups
	for _, text := range o.owners {
		rest, hosts := nameAndHosts(text)
		namespace, name, ok := strings.Cut(rest, "/")
		if !ok {
			return nil, fmt.Errorf("--owners %q: want namespace/name=host", text)
		}
		all = append(all, pki.Party{Role: pki.Owner, Namespace: leasehold.Namespace(namespace), Name: name, Hosts: hosts})
		lookups = append(lookups, namespace)
	}
	for i, namespace := range lookups {
		if !slices.Contains(lookups[:i], namespace) {
			all = append(all, pki.Party{Role: pki.Lookup, Namespace: leasehold.Namespace(namespace)})
		}
	}
	for _, name := range o.operators {
		all = append(all, pki.Party{Role: pki.Operator, Name: name})
	}
	return all, nil
}

func nameAndHosts(text string) (name string, hosts []string) {
	name, list, ok := strings.Cut(text, "=")
	if ok {
		hosts = strings.Split(list, "+")
	}
	return name, hosts
}

const pkiIssueHelp = `Creates a certificate with a new key, signed by the CA of "leasehold pki init": for a
manager or an operator with --name, for an owner with --namespace and --name, for a lookup
with --namespace. A lookup with --host can also be a server: this is for gateways whose
clients trust the CA.

If the directory has a certificate of the same identity, it is renewed, for the same hosts
unless --host changes them. Running processes reload the files. A certificate of another
identity is never overwritten.

The access policy decides the permissions of the identity; the required rule is printed.`

const pkiIssueExample = `  leasehold pki issue owner --namespace sessions --name cache-c --host host6
  leasehold pki issue manager --name m1              # renew it
  leasehold pki issue lookup --namespace sessions --host gateway1 --out ./gateway1
  leasehold pki issue operator --name carol --days 7 --out ./carol`

// pkiIssue holds the flags of "pki issue".
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
		Short:     "Create or renew a certificate",
		Long:      pkiIssueHelp,
		Example:   pkiIssueExample,
		Args:      cli.OneArgument("a role (manager, owner, lookup or operator)"),
		ValidArgs: []cobra.Completion{"manager", "owner", "lookup", "operator"},
		RunE:      func(cmd *cobra.Command, args []string) error { return o.run(cmd, pki.Role(args[0])) },
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", defaultPKIDir, "`directory` of the CA")
	f.StringVarP(&o.namespace, "namespace", "n", "", "`name` of an owner's or lookup's namespace")
	f.StringVar(&o.name, "name", "", "`name` of the manager, owner or operator")
	f.StringSliceVar(&o.hosts, "host", nil, "`hosts` at which clients connect to it, names or addresses (default unchanged, or its name)")
	f.StringVar(&o.out, "out", "", "output `directory` (default that of the identity, in that of the CA)")
	daysFlag(cmd, &o.days)
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
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
	return cli.PrintAs(cmd, o.asJSON, document, func() string { return issueText(document, pki.Rule(d.Domain(), issued.Party)) })
}

func issueText(document issuedDocument, rule string) string {
	text := issuedText([]issuedDocument{document})
	if document.Renewed {
		return console.Good("renewed") + "\n\n" + text
	}
	return fmt.Sprintf("%s\n\n%s\nThe access policy requires this rule:\n%s", console.Good("issued"), text, rule)
}

const pkiRevokeHelp = `Adds certificates of the CA to its revocation list, crl.pem. Copy the list to every process:
processes that have it reject the certificates and close their connections. A later
certificate of the same identity is not revoked.`

func newRevokeCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "revoke FILE",
		Short:   "Add a certificate to the CA's revocation list",
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
				"%s %x, which is now in the list in %s\nCopy the list to every process, as crl.pem in its --tls-dir directory; it takes effect within seconds.\n",
				console.Good("revoked"), certs[0].SerialNumber, file))
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultPKIDir, "`directory` of the CA")
	return cmd
}
