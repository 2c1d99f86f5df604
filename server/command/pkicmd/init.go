package pkicmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/server/console"
)

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
	text := document.text()
	if o.asJSON {
		text = console.JSON(document)
	}
	return cli.Write(console.New(cmd.OutOrStdout()), text)
}

func (d pkiDocument) text() string {
	return fmt.Sprintf("%s a CA for %s, valid until %s\n\n%s\nThe policy for them is %s.\nCopy each directory to where its process runs. Keep %s to yourself: whoever has it\ncan be anybody. \"leasehold pki issue\" renews a certificate; processes take it without a restart.\n",
		console.Good("made"), d.Domain, d.NotAfter.Format(time.DateOnly), issuedText(d.Issued), d.Policy, d.Dir+"/ca.key")
}

// parties are all who get a certificate.
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
	seen := make(map[string]bool)
	for _, namespace := range lookups {
		if !seen[namespace] {
			seen[namespace] = true
			all = append(all, pki.Party{Role: pki.Lookup, Namespace: leasehold.Namespace(namespace)})
		}
	}
	for _, name := range o.operators {
		all = append(all, pki.Party{Role: pki.Operator, Name: name})
	}
	return all, nil
}

// nameAndHosts takes name=host+host apart.
func nameAndHosts(text string) (name string, hosts []string) {
	name, list, ok := strings.Cut(text, "=")
	if ok {
		hosts = strings.Split(list, "+")
	}
	return name, hosts
}
