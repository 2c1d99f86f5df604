package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// NoArguments refuses what is neither a flag nor a flag's value.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes flags only, and %q is none", cmd.CommandPath(), args[0])
}

// OneArgument refuses anything but one argument, and says what it would be.
func OneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s needs %s", cmd.CommandPath(), what)
		case len(args) > 1:
			return fmt.Errorf("%s takes one argument, %s, and has %d; quote what belongs together", cmd.CommandPath(), what, len(args))
		case args[0] == "":
			return errors.New("want " + what + `, have ""`)
		}
		return nil
	}
}

// Group is a command that only has subcommands. Alone it prints its help.
func Group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: aSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// aSubcommand refuses what no subcommand is called.
func aSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("there is no command %q in %s", args[0], cmd.CommandPath())
}

// ParseBytes reads a number of bytes, such as 1048576, 512MiB or 8GiB.
func ParseBytes(text string) (int64, error) {
	units := []struct {
		name  string
		bytes int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"", 1}}
	for _, unit := range units {
		number, found := strings.CutSuffix(text, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 63)
		if err != nil || int64(n) > math.MaxInt64/unit.bytes {
			break
		}
		return int64(n) * unit.bytes, nil
	}
	return 0, fmt.Errorf("%q: want a number of bytes such as 512MiB or 8GiB", text)
}
