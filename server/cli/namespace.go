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

// chooseNamespace finds out which namespace is meant. If none was named, it is the only one that
// there is.
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
	const most = 10 // to list; more do not help
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return leasehold.Errorf("", leasehold.ErrInvalid, "", "say with --namespace which one you mean: %s", strings.Join(names, ", "))
}

func (c *Client) namespaceNames(ctx context.Context) ([]string, error) {
	all, err := c.Admin.Namespaces(ctx)
	var names []string
	for _, n := range all {
		names = append(names, console.Shown(n.Name))
	}
	return names, err
}

// completionTime is how long somebody who pressed the tabulator key waits, if
// nobody has said how long to wait.
const completionTime = time.Second

// complete asks a manager for names that begin as what was typed. It never
// fails: without an answer there is nothing to offer.
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

// Completion completes a flag, or an argument behind others.
type Completion = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective)

// CompleteWith completes the value of a flag. The command must have it: that is all that can go wrong.
func CompleteWith(cmd *cobra.Command, flag string, complete Completion) {
	_ = cmd.RegisterFlagCompletionFunc(flag, complete)
}

// OneOf completes with fixed values.
func OneOf(values ...string) Completion {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

func (c *Client) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.complete(cmd, typed, c.namespaceNames)
}

// CompleteNamespace completes a command's one argument, a namespace.
func (c *Client) CompleteNamespace() Completion { return onlyFirst(c.completeNamespaces) }

// CompleteOwner completes a command's one argument, an owner.
func (c *Client) CompleteOwner() Completion { return onlyFirst(c.CompleteOwners) }

func onlyFirst(complete Completion) Completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

// CompleteOwners completes with the names of the owners of the namespace.
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

// NoNamespace says that there is none. With TLS, everybody sees those of his roles alone.
func NoNamespace(secured bool) string {
	if secured {
		return "There is no namespace that we may see. 'leasehold namespace create NAME' makes one, if the managers' access file permits that."
	}
	return "There is no namespace yet. Create one with 'leasehold namespace create NAME'."
}
