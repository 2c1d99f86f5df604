package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

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
	lines := []console.Entry{
		{"key", key.text()},
		{"owner", orNobody(f.Owner)},
	}
	if f.Owner != "" {
		lines = append(lines, console.Entry{"address", console.OrDash(f.Addr)}, console.Entry{"generation", decimal(uint64(f.Generation))})
	}
	return console.Facts(append(lines,
		console.Entry{"range", fmt.Sprintf("%v, %s of the keys", f.Keys(), console.Percent(f.Share))},
		console.Entry{"state lost", lostText(f.Range)},
		console.Entry{"as of", "LSN " + console.Grouped(uint64(f.LSN))}))
}
