package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const namespaceHelp = `A namespace is one pool of servers with one key space and one lease table.
Nothing done in one changes another. These commands list, create, change and
delete namespaces.`

func newNamespaceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "namespace",
		Aliases: []string{"ns"},
		Short:   "List, create, change and delete namespaces",
		Long:    namespaceHelp,
		Args:    aSubcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNamespaceListCommand(), newNamespaceShowCommand(), newNamespaceCreateCommand(),
		newNamespaceUpdateCommand(), newNamespaceDeleteCommand())
	return cmd
}

// aSubcommand refuses what no subcommand is called.
func aSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("there is no command %q in %s", args[0], cmd.CommandPath())
}

func newNamespaceListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all namespaces and how they are configured",
		Args:  noArguments,
	}
	c := newClient(cmd)
	cmd.RunE = c.run(func(ctx context.Context, _ []string) error { return c.listNamespaces(ctx) })
	return cmd
}

func (c *client) listNamespaces(ctx context.Context) error {
	var all []*leaseholdv1.NamespaceConfig
	if err := c.ask(ctx, func(ctx context.Context, to admin) (err error) {
		all, err = namespaces(ctx, to)
		return err
	}); err != nil {
		return err
	}
	document := namespacesDocument{Namespaces: []namespaceDocument{}, secured: c.security.tls()}
	for _, n := range all {
		document.Namespaces = append(document.Namespaces, namespaceJSON(n))
	}
	return c.print(document, document.text)
}

// namespaces returns the configuration of all namespaces, sorted by name.
func namespaces(ctx context.Context, to admin) ([]*leaseholdv1.NamespaceConfig, error) {
	answer, err := to.ListNamespaces(ctx, &leaseholdv1.ListNamespacesRequest{Version: wire.Version})
	if err != nil {
		return nil, err
	}
	all := answer.GetNamespaces()
	slices.SortFunc(all, func(a, b *leaseholdv1.NamespaceConfig) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, nil
}

// find returns the configuration of the namespace with a name.
func find(ctx context.Context, to admin, name string) (*leaseholdv1.NamespaceConfig, error) {
	all, err := namespaces(ctx, to)
	if err != nil {
		return nil, err
	}
	for _, n := range all {
		if n.GetName() == name {
			return n, nil
		}
	}
	return nil, leasehold.Errorf("namespace", leasehold.NotFound, name, "there is none of this name")
}

// A namespacesDocument is what "namespace list --json" prints.
type namespacesDocument struct {
	Namespaces []namespaceDocument `json:"namespaces"`

	secured bool // we see what our roles cover
}

// A namespaceDocument is how a namespace is configured.
type namespaceDocument struct {
	Name         string         `json:"name"`
	LeaseSeconds float64        `json:"leaseSeconds"`
	RenewSeconds float64        `json:"renewSeconds"`
	Drift        float64        `json:"drift"`
	Policy       string         `json:"policy"`
	VirtualNodes uint32         `json:"virtualNodes,omitempty"`
	Static       []slotDocument `json:"static,omitempty"`
	MaxOwners    uint32         `json:"maxOwners"`

	// A manager that is older than moves does not know these; a newer one has no zeros.
	Churn            float64 `json:"churn,omitempty"` // the share of the keys that may move in a minute for the sake of balance
	RebalanceSeconds float64 `json:"rebalanceSeconds,omitempty"`
	Moves            uint32  `json:"moves,omitempty"` // of an owner at a time
	MoveTimeout      float64 `json:"moveTimeoutSeconds,omitempty"`
}

// A slotDocument gives the keys from start on to an owner; "" is nobody.
type slotDocument struct {
	Start string `json:"start"`
	Owner string `json:"owner"`
}

func namespaceJSON(n *leaseholdv1.NamespaceConfig) namespaceDocument {
	d := namespaceDocument{
		Name:         n.GetName(),
		LeaseSeconds: time.Duration(n.GetTiming().GetLease()).Seconds(),
		RenewSeconds: time.Duration(n.GetTiming().GetRenew()).Seconds(),
		Drift:        n.GetTiming().GetDrift(),
		Policy:       n.GetPolicy(),
		VirtualNodes: n.GetVirtualNodes(),
		MaxOwners:    n.GetMaxOwners(),

		Churn:            n.GetChurn(),
		RebalanceSeconds: time.Duration(n.GetRebalance()).Seconds(),
		Moves:            n.GetMoves(),
		MoveTimeout:      time.Duration(n.GetMoveTimeout()).Seconds(),
	}
	for _, s := range n.GetStatic() {
		d.Static = append(d.Static, slotDocument{Start: keyText(s.GetStart()), Owner: s.GetOwner()})
	}
	return d
}

// noNamespace says that there is none. With TLS, everybody sees those of his roles alone.
func noNamespace(secured bool) string {
	if secured {
		return "There is no namespace that we may see. 'leasehold namespace create NAME' makes one, if the managers' access file permits that."
	}
	return "There is no namespace yet. Create one with 'leasehold namespace create NAME'."
}

func (d namespacesDocument) text() string {
	if len(d.Namespaces) == 0 {
		return noNamespace(d.secured) + "\n"
	}
	var rows [][]string
	for _, n := range d.Namespaces {
		rows = append(rows, []string{
			shown(n.Name), seconds(n.LeaseSeconds), seconds(n.RenewSeconds), fmt.Sprintf("%.3g", n.Drift),
			n.policyText(), grouped(uint64(n.MaxOwners)),
		})
	}
	return tableText([]column{
		left("NAMESPACE"), number("LEASE"), number("RENEW"), number("DRIFT"), left("POLICY"), number("MAX OWNERS"),
	}, rows)
}

func (d namespaceDocument) policyText() string {
	switch {
	case d.VirtualNodes > 0:
		return fmt.Sprintf("%s, %s", shown(d.Policy), counted(int(d.VirtualNodes), "virtual node"))
	case len(d.Static) > 0:
		return fmt.Sprintf("%s, %s", shown(d.Policy), counted(len(d.Static), "slot"))
	}
	return shown(d.Policy)
}

// seconds writes a time that a document has in seconds.
func seconds(s float64) string { return brief(time.Duration(s * float64(time.Second))) }
