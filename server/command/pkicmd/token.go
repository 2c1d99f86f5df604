package pkicmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/secure"
)

//nolint:gosec // a text about tokens, and none
const tokenHelp = `Draws a bearer token, for people and scripts that have no certificate, and prints it,
once: nobody keeps it. What the access policy gets is its SHA-256, in the lines that
are printed with it, and a rule for the identity token:NAME that says what it may do:
choose its role, lookup or operator, and its namespaces.

With --out the token goes to a new file that only you can read, and not to the
terminal.`

func NewTokenCommand() *cobra.Command {
	var name, out, expires string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make a bearer token, and the lines for the access policy",
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
	f.StringVar(&name, "name", "", "the `name` of who gets it")
	f.StringVar(&expires, "expires", "", "the `day` from which it is worth nothing, such as 2027-01-01 (default never)")
	f.StringVar(&out, "out", "", "the `file` to write it to, which must not exist")
	return cmd
}

// tokenRule is a rule that permits nothing before somebody has chosen a namespace.
//
//nolint:gosec // a rule about tokens, and none
const tokenRule = `rules:
  - identity: %q
    role: lookup              # or operator
    namespaces: [NAMESPACE]   # some, by name, or "*"
`

// tokenLines are the lines for the policy. A token's name is like that of a
// certificate's holder.
func tokenLines(name, hash, expires string, now time.Time) (string, error) {
	if name == "" {
		return "", errors.New("--name is missing: who gets the token?")
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
			return "", fmt.Errorf("--expires %q: the token would be worth nothing, because that day has begun (in UTC)", expires)
		}
		lines += "    expires: " + expires + "\n"
	}
	return lines, nil
}

// writeSecret writes a file that was not there, for our eyes only.
func writeSecret(name, secret string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- the operator names the file
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists, and is not overwritten", name)
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
