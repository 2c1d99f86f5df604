package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
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
	found, err := within(ctx, c, func(ctx context.Context, namespace string) (admin.Found, error) {
		return c.admin.Find(ctx, namespace, key.key)
	})
	if err != nil {
		return err
	}
	document := struct {
		Name string `json:"name,omitempty"`
		admin.Found
	}{key.name, found}
	return c.print(document, func() string { return foundText(found, key) })
}

func foundText(f admin.Found, key *keyArgument) string {
	lines := []entry{
		{"key", key.text()},
		{"owner", orNobody(f.Owner)},
	}
	if f.Owner != "" {
		lines = append(lines, entry{"address", orDash(f.Addr)}, entry{"generation", decimal(uint64(f.Generation))})
	}
	return facts(append(lines,
		entry{"range", fmt.Sprintf("%v, %s of the keys", f.Keys(), percent(f.Share))},
		entry{"state lost", lostText(f.Range)},
		entry{"as of", "LSN " + grouped(uint64(f.LSN))}))
}
