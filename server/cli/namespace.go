package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/console"
)

// chooseNamespace sets the namespace to the only existing one if the command line names none.
func (c *Client) chooseNamespace(ctx context.Context) error {
	if c.Namespace != "" || c.settings.Lookup("namespace") == nil {
		return nil
	}
	names, err := c.namespaceNames(ctx)
	switch {
	case err != nil:
		return err
	case len(names) == 1:
		c.Namespace = names[0]
		return nil
	case len(names) == 0:
		return leasehold.Errorf("", leasehold.ErrInvalid, "", "%s", NoNamespace(c.Security.Tls()))
	}
	const maxNames = 10
	if len(names) > maxNames {
		names = append(names[:maxNames], "...")
	}
	return leasehold.Errorf("", leasehold.ErrInvalid, "", "choose a namespace with --namespace: %s", strings.Join(names, ", "))
}

func (c *Client) namespaceNames(ctx context.Context) ([]string, error) {
	all, err := c.Admin.Namespaces(ctx)
	var names []string
	for _, n := range all {
		names = append(names, console.Shown(n.Name))
	}
	return names, err
}

// completionTime is the default timeout of a completion, during which the shell waits.
const completionTime = time.Second

// complete returns the names with the typed prefix. Without an answer from a manager it
// returns none.
func (c *Client) complete(cmd *cobra.Command, typed string, names func(context.Context) ([]string, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if Fill(cmd, c.settings, c.file) != nil || c.validate() != nil {
		return nil, directive
	}
	if !c.settings.Changed("timeout") {
		c.Timeout = completionTime
	}
	disconnect, err := c.Connect()
	if err != nil {
		return nil, directive
	}
	defer disconnect()
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background() // cobra completes flags without one
	}
	all, err := names(ctx)
	if err != nil {
		return nil, directive
	}
	return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, typed) }), directive
}

// Completion completes the value of a flag or an argument.
type Completion = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective)

// CompleteWith completes the value of a flag. The error of cobra is for a missing flag only.
func CompleteWith(cmd *cobra.Command, flag string, complete Completion) {
	_ = cmd.RegisterFlagCompletionFunc(flag, complete)
}

// OneOf completes one of a fixed list of values.
func OneOf(values ...string) Completion {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

func (c *Client) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.complete(cmd, typed, c.namespaceNames)
}

// CompleteNamespace completes the only argument of a command with a namespace.
func (c *Client) CompleteNamespace() Completion { return onlyFirst(c.completeNamespaces) }

// CompleteOwner completes the only argument of a command with an owner.
func (c *Client) CompleteOwner() Completion { return onlyFirst(c.CompleteOwners) }

func onlyFirst(complete Completion) Completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

// CompleteOwners completes an owner of the namespace.
func (c *Client) CompleteOwners(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.complete(cmd, typed, func(ctx context.Context) ([]string, error) {
		all, err := Within(ctx, c, c.Admin.Owners)
		var names []string
		for _, o := range all.Owners {
			names = append(names, console.Shown(o.Owner))
		}
		return names, err
	})
}

// NoNamespace is the message for an empty list. With TLS, a caller sees only the namespaces of its roles.
func NoNamespace(secured bool) string {
	if secured {
		return "No namespace is visible to this identity. Create one with 'leasehold namespace create NAME' if the managers' access file permits it."
	}
	return "There is no namespace yet. Create one with 'leasehold namespace create NAME'."
}
