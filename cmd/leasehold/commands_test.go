package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/command/rootcmd"
)

// TestExamplesExist checks that the commands in the examples of the help texts exist.
func TestExamplesExist(t *testing.T) {
	root := rootcmd.New()
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "leasehold ")
			if !ok {
				continue
			}
			found, _, err := root.Find(strings.Fields(command))
			if err != nil || !found.HasParent() {
				t.Errorf("%s: the example %q is not a command: %v", c.CommandPath(), line, err)
			}
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(root)
}
