package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
)

const statusHelp = `Says which manager leads, since when, where the lease tables are kept, and how
each namespace fares. Any manager can be asked. Of a namespace whose policy goes by
loads it says why nothing is balanced, if so: there is too little load to tell, or
too little is known of it yet.`

func newStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say who leads and how each namespace fares",
		Long:  statusHelp,
		Example: `  leasehold status
  leasehold status --json | jq '.namespaces[] | select(.ready | not)'`,
		Args: noArguments,
	}
	c := newClient(cmd)
	cmd.RunE = c.run(func(ctx context.Context, _ []string) error { return c.status(ctx) })
	return cmd
}

func (c *client) status(ctx context.Context) error {
	status, err := c.admin.Status(ctx)
	if err != nil {
		return c.explain(ctx, err)
	}
	return c.print(status, func() string { return statusText(status, c.security.tls()) })
}

// statusText writes a status. With TLS, only the namespaces of the caller's roles are in it.
func statusText(d admin.Status, secured bool) string {
	leader := bad("none") + ": leases go on until they run out, and nothing changes"
	if d.Leader != "" {
		leader = fmt.Sprintf("%s, in term %d", good(shown(d.Leader)), d.Term)
	}
	if d.Leader != "" && d.LedFor > 0 {
		leader += ", for " + brief(time.Duration(d.LedFor))
	}
	text := facts([]entry{
		{"leader", leader},
		{"asked", shown(d.Manager)},
		{"build", shown(d.Build)},
		{"store", shown(d.Store)},
	}) + "\n"
	for _, w := range d.Warnings {
		text += bad("Warning: ") + shown(w) + ".\n"
	}
	if d.Problem != "" {
		text += bad("Not all is known: ") + d.Problem + ".\n"
	}
	if len(d.Namespaces) == 0 && d.Problem != "" {
		return text
	}
	if len(d.Namespaces) == 0 {
		return text + noNamespace(secured) + "\n"
	}
	var rows [][]string
	for _, n := range d.Namespaces {
		rows = append(rows, []string{
			shown(n.Name), grouped(uint64(n.Owners)), grouped(uint64(n.Ranges)), grouped(uint64(n.Vacant)),
			grouped(uint64(n.Moves)), grouped(uint64(n.Lookups)), grouped(uint64(n.LSN)), decimal(uint64(n.NewestGeneration)), readyText(n),
		})
	}
	return text + tableText([]column{
		left("NAMESPACE"), number("OWNERS"), number("RANGES"), number("VACANT"), number("MOVES"), number("LOOKUPS"),
		number("LSN"), number("GENERATION"), left("READY"),
	}, rows) + lulls(d)
}

// lulls says where nothing is balanced, and why.
func lulls(d admin.Status) string {
	text := ""
	for _, n := range d.Namespaces {
		if n.Lull != "" {
			text += fmt.Sprintf("%s is not balanced by load now: %s.\n", shown(n.Name), n.Lull)
		}
	}
	return text
}

func readyText(d admin.NamespaceStatus) string {
	switch {
	case d.Ready && d.Problem != "":
		return good("yes") + ", but " + bad(shown(d.Problem))
	case d.Ready:
		return good("yes")
	}
	return bad("no") + ": " + orDash(d.Problem)
}

func vacancyText(d admin.NamespaceStatus) string {
	if d.Vacant == 0 {
		return grouped(uint64(d.Ranges))
	}
	return fmt.Sprintf("%s, of which nobody holds %s", grouped(uint64(d.Ranges)), grouped(uint64(d.Vacant)))
}
