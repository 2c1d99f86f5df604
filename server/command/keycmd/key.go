package keycmd

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

const findHelp = `Says who holds a key, where that server is, and under which generation.

` + cli.KeyHelp

// New returns the command.
func New() *cobra.Command {
	return cli.Group("key", "Say who holds a key, and who held it", groupHelp, newFindCommand(), newHistoryCommand())
}

const groupHelp = `A key is a number of 64 bits, mostly the hash of a name.`

func newFindCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "find KEY",
		Short: "Say who holds a key",
		Long:  findHelp,
		Example: `  leasehold key find alice -n presence
  leasehold key find 0x4000000000000000 -n presence`,
		Args: cli.OneArgument("a key"),
	}
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	k := cli.AddKeyFlag(cmd)
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		key, err := k.Parse(args[0])
		if err != nil {
			return err
		}
		return find(ctx, c, key)
	})
	return cmd
}

func find(ctx context.Context, c *cli.Client, key *cli.KeyArgument) error {
	found, err := cli.Within(ctx, c, func(ctx context.Context, namespace string) (admin.Found, error) {
		return c.Admin.Find(ctx, namespace, key.Key)
	})
	if err != nil {
		return err
	}
	document := struct {
		Name string `json:"name,omitempty"`
		admin.Found
	}{key.Name, found}
	return c.Print(document, func() string { return foundText(found, key) })
}

func foundText(f admin.Found, key *cli.KeyArgument) string {
	lines := []console.Entry{
		{"key", key.Text()},
		{"owner", cli.OrNobody(f.Owner)},
	}
	if f.Owner != "" {
		lines = append(lines, console.Entry{"address", console.OrDash(f.Addr)}, console.Entry{"generation", cli.Decimal(uint64(f.Generation))})
	}
	return console.Facts(append(lines,
		console.Entry{"range", fmt.Sprintf("%v, %s of the keys", f.Keys(), console.Percent(f.Share))},
		console.Entry{"state lost", cli.LostText(f.Range)},
		console.Entry{"as of", "LSN " + console.Grouped(uint64(f.LSN))}))
}
