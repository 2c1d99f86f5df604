// Package pkicmd has the subcommands that make certificates and tokens.
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
	return console.Table([]console.Column{console.Left("WHO"), console.Left("FILES IN"), console.Left("UNTIL"), console.Left("SERVES AT")},
		console.Rows(all, func(i issuedDocument) []string {
			return []string{i.Identity, i.Dir, i.NotAfter.Format(time.DateOnly), console.OrDash(strings.Join(i.Hosts, " "))}
		}))
}

const pkiInitHelp = `Makes a directory with a CA, a certificate with its key for each manager, owner,
lookup and operator that a flag names, and access.yaml, a policy that permits each
of them what its role says and everybody else nothing.

A manager or owner is named with the hosts at which others call it, name=host, or
name=host+host for several; without, the name is the host. Managers can always be
called as localhost, too. Lookups are per namespace: each namespace of --owners has
one.

The directory of each has the three files that its process needs: tls.crt, tls.key
and ca.crt. Copy it there and keep it private; keep ca.key where no server is.
Certificates are valid for --days, the CA for ten years. Nothing is overwritten.`

const pkiInitExample = `  leasehold pki init                                        # one manager, on this computer
  leasehold pki init --domain example.org --managers m1=host1,m2=host2,m3=host3 \
      --owners sessions/cache-a=host4,sessions/cache-b=host5 --operators alice,bob`

// pkiInit is what the flags of "pki init" say.
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
		Short:   "Make a CA, certificates for a whole setup, and the policy that goes with them",
		Long:    pkiInitHelp,
		Example: pkiInitExample,
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", defaultPKIDir, "the `directory` to make")
	f.StringVar(&o.domain, "domain", "leasehold.internal", "the `domain` of all identities, spiffe://domain/role/...; it need not exist")
	f.StringSliceVar(&o.managers, "managers", []string{"m1=localhost"}, "the managers, `name=host`, with commas between")
	f.StringSliceVar(&o.owners, "owners", nil, "the owners, `namespace/name=host`")
	f.StringSliceVar(&o.lookups, "lookups", nil, "`namespaces` to make a lookup's certificate for, besides those of --owners")
	f.StringSliceVar(&o.operators, "operators", []string{"admin"}, "the operators' `names`")
	daysFlag(cmd, &o.days)
	f.BoolVar(&o.asJSON, "json", false, "print for programs")
	return cmd
}

// A pkiDocument is what "pki init --json" prints.
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
	return fmt.Sprintf("%s a CA for %s, valid until %s\n\n%s\nThe policy for them is %s.\nCopy each directory to where its process runs. Keep %s to yourself: whoever has it\ncan be anybody. \"leasehold pki issue\" renews a certificate; processes take it without a restart.\n",
		console.Good("made"), d.Domain, d.NotAfter.Format(time.DateOnly), issuedText(d.Issued), d.Policy, d.Dir+"/ca.key")
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
	return cli.PrintAs(cmd, o.asJSON, document, func() string { return issueText(document, pki.Rule(d.Domain(), issued.Party)) })
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
