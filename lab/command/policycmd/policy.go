// Package policycmd has the subcommand "policy": it tries assignment policies on workloads.
package policycmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/lab/policylab"
	"github.com/leasehold-dev/leasehold/partition"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/settings"
)

const policyHelp = `A policy assigns keys to owners. These commands list the policies, and try them on
this computer, without a manager.`

// New returns the command.
func New() *cobra.Command {
	return cli.Group("policy", "List the policies that assign keys to owners, and try them", policyHelp, newListCommand(), newTryCommand())
}

func newListCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the policies, and the workloads to try them with",
		Example: "  leasehold-lab policy list",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			document := listedPolicies()
			text := document.text()
			if asJSON {
				text = console.JSON(document)
			}
			return cli.Write(console.New(cmd.OutOrStdout()), text)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// A policiesDocument is the output of "policy list --json".
type policiesDocument struct {
	Policies  []namedDocument `json:"policies"`
	Workloads []namedDocument `json:"workloads"`
}

type namedDocument struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	Default bool   `json:"default,omitempty"`
}

func listedPolicies() policiesDocument {
	var d policiesDocument
	for _, name := range partition.Names() {
		d.Policies = append(d.Policies, namedDocument{name, aboutPolicies[name], name == partition.DefaultName})
	}
	for _, k := range policylab.Kinds() {
		d.Workloads = append(d.Workloads, namedDocument{k.Name, k.About, k.Name == policylab.NameZipf})
	}
	return d
}

// aboutPolicies has a description of each policy.
var aboutPolicies = map[string]string{
	"adaptive":   "consistent hashing that takes a virtual node from owners 10 % above the mean (PRS)",
	"balanced":   "moves the fewest keys that balance the load, splits, merges, isolates hot keys",
	"consistent": "consistent hashing with virtual nodes; ignores load",
	"even":       "equal slices in the order of the owners' names; ignores load",
	"static":     "a fixed assignment (cannot be tried)",
}

func (d policiesDocument) text() string {
	section := func(title string, of []namedDocument) string {
		var rows [][]string
		for _, n := range of {
			name := n.Name
			if n.Default {
				name += " *"
			}
			rows = append(rows, []string{name, n.About})
		}
		return console.Table([]console.Column{console.Left(title), console.Left("DESCRIPTION")}, rows)
	}
	return section("POLICY", d.Policies) + "\n" + section("WORKLOAD", d.Workloads) + "\n* default\n"
}

func triedPolicies() []string {
	return slices.DeleteFunc(partition.Names(), func(name string) bool { return name == partition.Static{}.Name() })
}

func policyNamed(flag, name string, o partition.Options) (partition.Policy, error) {
	if !slices.Contains(triedPolicies(), name) {
		return nil, noSuchName(flag, name, triedPolicies())
	}
	p, err := partition.ByName(name, o)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", flag, name, err)
	}
	return p, nil
}

// noSuchName returns the error of a flag with an unknown name.
func noSuchName(flag, value string, names []string) error {
	closest := ""
	for _, name := range settings.Nearest(value, names, 1) {
		closest = "the closest is " + name + "; "
	}
	return fmt.Errorf("--%s %q: %suse one of %s", flag, value, closest, strings.Join(names, ", "))
}
