package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
)

// chooseNamespace finds out which namespace is meant. If none was named, it is the only one that
// there is.
func (c *client) chooseNamespace(ctx context.Context) error {
	if c.namespace != "" {
		return nil
	}
	names, err := c.namespaceNames(ctx)
	switch {
	case err != nil:
		return err
	case len(names) == 1:
		c.namespace = names[0]
		return nil
	case len(names) == 0:
		return leasehold.Errorf("", leasehold.ErrInvalid, "", "%s", noNamespace(c.security.tls()))
	}
	const most = 10 // to list; more do not help
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return leasehold.Errorf("", leasehold.ErrInvalid, "", "say with --namespace which one you mean: %s", strings.Join(names, ", "))
}

func (c *client) namespaceNames(ctx context.Context) ([]string, error) {
	all, err := c.admin.Namespaces(ctx)
	var names []string
	for _, n := range all {
		names = append(names, shown(n.Name))
	}
	return names, err
}

// completionTime is how long somebody who pressed the tabulator key waits, if
// nobody has said how long to wait.
const completionTime = time.Second

// complete asks a manager for names that begin as what was typed. It never
// fails: without an answer there is nothing to offer.
func (c *client) complete(cmd *cobra.Command, typed string, names func(context.Context) ([]string, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if fill(cmd, c.settings, c.file) != nil || c.validate() != nil {
		return nil, directive
	}
	if !c.settings.Changed("timeout") {
		c.timeout = completionTime
	}
	disconnect, err := c.connect()
	if err != nil {
		return nil, directive
	}
	defer disconnect()
	var offered []cobra.Completion
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background() // cobra completes flags without one
	}
	all, err := names(ctx)
	for _, name := range all {
		if strings.HasPrefix(name, typed) {
			offered = append(offered, name)
		}
	}
	if err != nil {
		return nil, directive
	}
	return offered, directive
}

func (c *client) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.complete(cmd, typed, c.namespaceNames)
}

// completeNamespace is completeNamespaces for a command's one argument.
func (c *client) completeNamespace(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.completeNamespaces(cmd, args, typed)
}

func (c *client) completeOwners(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.complete(cmd, typed, func(ctx context.Context) ([]string, error) {
		all, err := within(ctx, c, c.admin.Owners)
		var names []string
		for _, o := range all.Owners {
			names = append(names, shown(o.Owner))
		}
		return names, err
	})
}

// noNamespace says that there is none. With TLS, everybody sees those of his roles alone.
func noNamespace(secured bool) string {
	if secured {
		return "There is no namespace that we may see. 'leasehold namespace create NAME' makes one, if the managers' access file permits that."
	}
	return "There is no namespace yet. Create one with 'leasehold namespace create NAME'."
}
