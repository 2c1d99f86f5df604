package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const keyHelp = `KEY is a name, which is hashed as the libraries hash names, or a key of 64 bits
in hexadecimal: with 0x before it, or with --hex. For a name that begins with 0x
say --hex=false.`

const lookupHelp = `Says who holds a key, where that server is, and under which generation.

` + keyHelp

func newLookupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lookup KEY",
		Short: "Say who holds a key",
		Long:  lookupHelp,
		Example: `  leasehold lookup alice -n presence
  leasehold lookup 0x4000000000000000 -n presence`,
		Args: oneArgument("a key"),
	}
	c := newClient(cmd).inNamespace(cmd, usualNamespace)
	k := addKeyFlag(cmd)
	cmd.RunE = c.run(func(ctx context.Context, args []string) error {
		key, err := k.parse(args[0])
		if err != nil {
			return err
		}
		return c.lookup(ctx, key)
	})
	return cmd
}

// A keyArgument is a key as somebody wrote it.
type keyArgument struct {
	cmd *cobra.Command
	hex bool

	name string // "" if the key was written as such
	key  leasehold.Key
}

func addKeyFlag(cmd *cobra.Command) *keyArgument {
	k := &keyArgument{cmd: cmd}
	cmd.Flags().BoolVar(&k.hex, "hex", false, "KEY is a key in hexadecimal, not a name")
	return k
}

func (k *keyArgument) parse(text string) (*keyArgument, error) {
	digits, prefixed := strings.CutPrefix(strings.ToLower(text), "0x")
	if k.cmd.Flags().Changed("hex") && !k.hex || !k.hex && !prefixed {
		k.name, k.key = text, leasehold.KeyOf(text)
		return k, nil
	}
	const most = 16
	if len(digits) == 0 || len(digits) > most {
		return nil, fmt.Errorf("%q: want 1 to %d hexadecimal digits, have %d; for a name say --hex=false", text, most, len(digits))
	}
	key, err := leasehold.ParseKey(strings.Repeat("0", most-len(digits)) + digits)
	if err != nil {
		return nil, fmt.Errorf("%q: want hexadecimal digits; for a name say --hex=false", text)
	}
	k.key = key
	return k, nil
}

// text writes the key for people.
func (k *keyArgument) text() string {
	if k.name == "" {
		return k.key.String()
	}
	return fmt.Sprintf("%s, the hash of %q", k.key, k.name)
}

func (c *client) lookup(ctx context.Context, key *keyArgument) error {
	var answer *leaseholdv1.LookupKeyResponse
	if err := c.askWithin(ctx, func(ctx context.Context, to admin) (err error) {
		answer, err = to.LookupKey(ctx, &leaseholdv1.LookupKeyRequest{Version: wire.Version, Namespace: c.namespace, Key: uint64(key.key)})
		return err
	}); err != nil {
		return err
	}
	document := lookupDocument{
		Namespace: c.namespace, Key: key.key.String(), Name: key.name, LSN: answer.GetLsn(),
		rangeDocument: rangeJSON(answer.GetRange(), answer.GetBegun()),
	}
	return c.print(document, func() string { return document.text(key) })
}

// A lookupDocument is what "lookup --json" prints: the range around the key.
type lookupDocument struct {
	Namespace string `json:"namespace"`
	Key       string `json:"key"`
	Name      string `json:"name,omitempty"`
	LSN       uint64 `json:"lsn"`
	rangeDocument
}

func (d lookupDocument) text(key *keyArgument) string {
	lines := []entry{
		{"key", key.text()},
		{"owner", orNobody(d.Owner)},
	}
	if d.Owner != "" {
		lines = append(lines, entry{"address", orDash(d.Addr)}, entry{"generation", d.Generation})
	}
	return facts(append(lines,
		entry{"range", fmt.Sprintf("%v, %s of the keys", d.keys, percent(d.Share))},
		entry{"state lost", d.lostText()},
		entry{"as of", "LSN " + grouped(d.LSN)}))
}
