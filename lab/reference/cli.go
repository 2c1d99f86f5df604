package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	labroot "github.com/leasehold-dev/leasehold/lab/command/rootcmd"
	"github.com/leasehold-dev/leasehold/server/command/rootcmd"
)

const commandHeader = `# Commands

` + generated + `Each section has the output of ` + "`--help`" + `. [Settings](configuration.md) has the variables and file keys.

`

// commandReference returns the help of every command that is not hidden.
func commandReference() string {
	var contents, sections strings.Builder
	for _, root := range []*cobra.Command{rootcmd.New(), labroot.New()} {
		visit(root, func(c *cobra.Command) {
			path := c.CommandPath()
			fmt.Fprintf(&contents, "%s- [%s](#%s): %s\n", strings.Repeat("  ", strings.Count(path, " ")), path, strings.ReplaceAll(path, " ", "-"), c.Short)
			fmt.Fprintf(&sections, "\n## %s\n\n```text\n%s```\n", path, help(c))
		})
	}
	return commandHeader + contents.String() + sections.String()
}

// visit calls do for a command and all commands below it, in the order of the help. Hidden commands are omitted, and
// "help", which has no help of its own.
func visit(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			visit(sub, do)
		}
	}
}

// help returns the output of a command with --help.
func help(c *cobra.Command) string {
	var out bytes.Buffer
	c.SetOut(&out)
	c.InitDefaultHelpFlag() // cobra adds both only during parsing
	c.InitDefaultVersionFlag()
	if err := c.Help(); err != nil {
		panic(err) // a buffer accepts everything
	}
	return out.String()
}
