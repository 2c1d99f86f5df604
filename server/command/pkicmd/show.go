package pkicmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

const pkiShowHelp = `Prints the identity, expiry and issuer of each certificate in a PEM file; for a directory,
such as that of --tls-dir, of its file tls.crt. Exit status 1 means that a certificate has
expired or is not valid yet.`

func certificateIn(name string) string {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return filepath.Join(name, "tls.crt")
	}
	return name
}

func newShowCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "show FILE|DIRECTORY",
		Short:   "Show the certificates in a file",
		Long:    pkiShowHelp,
		Example: "  leasehold pki show pki/manager/m1/tls.crt",
		Args:    cli.OneArgument("a file with certificates"),
		RunE: func(cmd *cobra.Command, args []string) error {
			certs, err := pki.ReadCertificates(certificateIn(args[0]))
			if err != nil {
				return cli.Fail(err)
			}
			var document certificatesDocument
			for _, cert := range certs {
				document.Certificates = append(document.Certificates, certificateJSON(secure.Describe(cert), time.Now()))
			}
			if err := cli.PrintAs(cmd, asJSON, document, document.text); err != nil {
				return err
			}
			return document.status()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// A certificatesDocument is the output of "pki show --json".
type certificatesDocument struct {
	Certificates []certificateDocument `json:"certificates"`
}

type certificateDocument struct {
	Identities []string  `json:"identities"`
	Hosts      []string  `json:"hosts"`
	Subject    string    `json:"subject"`
	Issuer     string    `json:"issuer"`
	Serial     string    `json:"serial"`
	NotBefore  time.Time `json:"not_before"`
	NotAfter   time.Time `json:"not_after"`
	CA         bool      `json:"ca"`
	Client     bool      `json:"client"`
	Server     bool      `json:"server"`
	Valid      bool      `json:"valid"` // at this time

	now time.Time
}

func certificateJSON(d secure.Description, now time.Time) certificateDocument {
	c := certificateDocument{
		Hosts: append([]string{}, d.Hosts...), Subject: d.Subject, Issuer: d.Issuer, Serial: d.Serial,
		NotBefore: d.NotBefore.UTC(), NotAfter: d.NotAfter.UTC(), CA: d.CA, Client: d.Client, Server: d.Server,
		Valid: !now.Before(d.NotBefore) && !now.After(d.NotAfter), Identities: []string{}, now: now,
	}
	for _, id := range d.Identities {
		c.Identities = append(c.Identities, string(id))
	}
	return c
}

func (d certificatesDocument) status() error {
	for _, c := range d.Certificates {
		if !c.Valid {
			return cli.StatusViolated
		}
	}
	return nil
}

func (d certificatesDocument) text() string {
	var all []string
	for _, c := range d.Certificates {
		all = append(all, c.text())
	}
	return strings.Join(all, "\n")
}

func (c certificateDocument) text() string {
	who := console.Shown(strings.Join(c.Identities, " "))
	if len(c.Identities) == 0 {
		who = "none: the certificate has no identity (subject " + console.Shown(c.Subject) + ")"
	}
	return console.Facts([]console.Entry{
		console.If(c.CA, "CA", console.Shown(c.Subject)),
		console.If(!c.CA, "who", who),
		console.If(!c.CA, "serves at", console.OrDash(strings.Join(c.Hosts, " "))),
		console.If(!c.CA, "good for", c.goodFor()),
		{"until", c.until()},
		{"issued by", console.Shown(c.Issuer)},
		{"serial", c.Serial},
	})
}

func (c certificateDocument) goodFor() string {
	switch {
	case c.Client && c.Server:
		return "clients and servers"
	case c.Client:
		return "clients"
	case c.Server:
		return "servers"
	}
	return "neither clients nor servers"
}

func (c certificateDocument) until() string {
	end := c.NotAfter.Format(time.DateTime) + " UTC"
	switch {
	case c.now.Before(c.NotBefore):
		return fmt.Sprintf("%s, but %s before %s UTC", end, console.Bad("not valid"), c.NotBefore.Format(time.DateTime))
	case c.now.After(c.NotAfter):
		return fmt.Sprintf("%s, %s %s ago", end, console.Bad("expired"), console.Brief(c.now.Sub(c.NotAfter)))
	}
	return fmt.Sprintf("%s, for another %s", end, console.Brief(c.NotAfter.Sub(c.now)))
}

//nolint:gosec // a text about tokens, which contains none
const tokenHelp = `Generates a bearer token, for people and scripts without a certificate, and prints it once:
it is not stored. The access policy contains its SHA-256, in the lines that are printed
with it, and a rule for the identity token:NAME that grants its permissions: choose its
role, lookup or operator, and its namespaces.

With --out the token is written to a new file that only you can read, instead of the
terminal.`

func NewTokenCommand() *cobra.Command {
	var name, out, expires string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Generate a bearer token, and the lines for the access policy",
		Long:  tokenHelp,
		Example: `  leasehold token --name alice --out alice.token
  leasehold token --name ci --expires 2027-01-01`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, hash := pki.NewToken()
			lines, err := tokenLines(name, hash, expires, time.Now())
			if err != nil {
				return err
			}
			if out == "" {
				return cli.Write(cmd.OutOrStdout(), token+"\n\n"+lines)
			}
			if err := writeSecret(out, token); err != nil {
				return cli.Fail(err)
			}
			return cli.Write(cmd.OutOrStdout(), lines)
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "`name` of the token's user")
	f.StringVar(&expires, "expires", "", "`day` on which the token expires, such as 2027-01-01 (default never)")
	f.StringVar(&out, "out", "", "output `file`, which must not exist")
	return cmd
}

// tokenRule is a rule that grants nothing until a namespace is filled in.
//
//nolint:gosec // a rule about tokens, which contains none
const tokenRule = `rules:
  - identity: %q
    role: lookup              # or operator
    namespaces: [NAMESPACE]   # some, by name, or "*"
`

// tokenLines returns the lines for the policy. The name of a token has the syntax of a name in a
// certificate.
func tokenLines(name, hash, expires string, now time.Time) (string, error) {
	if name == "" {
		return "", errors.New("--name, the name of the token's user, is missing")
	}
	if id := secure.Identity("spiffe://domain/" + name); strings.ContainsAny(name, "{}/") || id.Validate() != nil {
		return "", fmt.Errorf("--name %q: use letters, digits, '.', '_' and '-'", name)
	}
	lines := fmt.Sprintf(tokenRule+"tokens:\n  - name: %q\n    sha256: %s\n", "token:"+name, name, hash)
	if expires != "" {
		day, err := time.Parse(time.DateOnly, expires)
		if err != nil {
			return "", fmt.Errorf("--expires %q: want a day, such as 2027-01-01", expires)
		}
		if !day.After(now) {
			return "", fmt.Errorf("--expires %q: the day has already begun (in UTC), so the token would be expired", expires)
		}
		lines += "    expires: " + expires + "\n"
	}
	return lines, nil
}

func writeSecret(name, secret string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- the operator names the file
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and is not overwritten: choose another file", name)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(secret + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
