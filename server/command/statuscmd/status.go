// Package statuscmd is the subcommand "status".
package statuscmd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

const statusHelp = `Prints the leader, since when it leads, the store of the lease tables, and the state of
each namespace. Any manager can respond. If a namespace is not balanced by load, the
reason is printed: the load is too low, or too few loads are known yet.`

func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the leader and the state of each namespace",
		Long:  statusHelp,
		Example: `  leasehold status
  leasehold status -n presence
  leasehold status --json | jq '.namespaces[] | select(.ready | not)'`,
		Args: cli.NoArguments,
	}
	c := cli.NewClient(cmd)
	c.InNamespace(cmd, "`name` of the only namespace to print")
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error {
		s, err := c.Admin.Status(ctx)
		if err == nil && c.Namespace != "" {
			err = selectNamespace(&s, c.Namespace)
		}
		if err != nil {
			return c.Explain(ctx, err)
		}
		return c.Print(s, func() string { return statusText(s, c.Security.Tls()) })
	})
	return cmd
}

func selectNamespace(s *admin.Status, name string) error {
	s.Namespaces = slices.DeleteFunc(s.Namespaces, func(n admin.NamespaceStatus) bool { return n.Name != name })
	if len(s.Namespaces) == 0 && s.Problem == "" {
		return leasehold.Errorf("namespace", leasehold.ErrNotFound, name, "there is no such namespace")
	}
	return nil
}

// statusText formats a status. With TLS, it contains only the namespaces of the caller's roles.
func statusText(d admin.Status, secured bool) string {
	leader := console.Bad("none") + ": existing leases continue until they expire, and nothing changes"
	if d.Leader != "" {
		leader = fmt.Sprintf("%s, term %d", console.Good(console.Shown(d.Leader)), d.Term)
	}
	if d.Leader != "" && d.LedFor > 0 {
		leader += ", leader for " + console.Brief(time.Duration(d.LedFor))
	}
	text := console.Facts([]console.Entry{
		{"leader", leader},
		{"manager", console.Shown(d.Manager)},
		{"build", console.Shown(d.Build)},
		{"store", console.Shown(d.Store)},
	}) + "\n"
	for _, w := range d.Warnings {
		text += console.Bad("Warning: ") + console.Shown(w) + ".\n"
	}
	if d.Problem != "" {
		text += console.Bad("Incomplete: ") + d.Problem + ".\n"
	}
	if len(d.Namespaces) == 0 && d.Problem != "" {
		return text
	}
	if len(d.Namespaces) == 0 {
		return text + cli.NoNamespace(secured) + "\n"
	}
	rows := console.Rows(d.Namespaces, func(n admin.NamespaceStatus) []string {
		return []string{
			console.Shown(n.Name), console.Grouped(uint64(n.Owners)), console.Grouped(uint64(n.Ranges)), console.Grouped(uint64(n.Vacant)),
			console.Grouped(uint64(n.Moves)), console.Grouped(uint64(n.Lookups)), console.Grouped(uint64(n.LSN)), cli.Decimal(uint64(n.NewestGeneration)), cli.ReadyText(n),
		}
	})
	return text + console.Table([]console.Column{
		console.Left("NAMESPACE"), console.Number("OWNERS"), console.Number("RANGES"), console.Number("VACANT"), console.Number("MOVES"), console.Number("LOOKUPS"),
		console.Number("LSN"), console.Number("GENERATION"), console.Left("READY"),
	}, rows) + lulls(d)
}

func lulls(d admin.Status) string {
	text := ""
	for _, n := range d.Namespaces {
		if n.Lull != "" {
			text += fmt.Sprintf("%s is not balanced by load now: %s.\n", console.Shown(n.Name), n.Lull)
		}
	}
	return text
}
