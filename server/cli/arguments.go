// Package cli holds what the leasehold subcommands share: the flags for manager addresses and
// connection security, settings from files and the environment, exit statuses, error messages
// with advice, and the text form of manager responses.
package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/settings"
)

// NoArguments rejects positional arguments.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes only flags, and %q is not a flag", cmd.CommandPath(), args[0])
}

// OneArgument accepts exactly one non-empty argument; what describes it in the error.
func OneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s needs %s", cmd.CommandPath(), what)
		case len(args) > 1:
			return fmt.Errorf("%s takes one argument, %s, and has %d; quote an argument that contains spaces", cmd.CommandPath(), what, len(args))
		case args[0] == "":
			return errors.New("want " + what + `, have ""`)
		}
		return nil
	}
}

// Group returns a command that only has subcommands. Without one it prints its help.
func Group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: rejectUnknownSubcommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		// The flags of a misspelled subcommand are no error: its name is.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	cmd.AddCommand(commands...)
	return cmd
}

func rejectUnknownSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("%s has no subcommand %q", cmd.CommandPath(), args[0])
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		err = fmt.Errorf("%w: the closest is %s", err, similar[0])
	}
	return err
}

// ParseBytes parses a number of bytes, such as 1048576, 512MiB or 8GiB.
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

const KeyHelp = `KEY is a name, which is hashed as the libraries hash names, or a 64-bit key in
hexadecimal: with the prefix 0x, or with --hex. For a name that begins with 0x
use --hex=false.`

// A KeyArgument is a key from the command line.
type KeyArgument struct {
	cmd *cobra.Command
	hex bool

	Name string // "" if the argument is a hexadecimal key
	Key  leasehold.Key
}

func (k *KeyArgument) Parse(text string) (*KeyArgument, error) {
	digits, prefixed := strings.CutPrefix(strings.ToLower(text), "0x")
	if k.cmd.Flags().Changed("hex") && !k.hex || !k.hex && !prefixed {
		k.Name, k.Key = text, leasehold.KeyOf(text)
		return k, nil
	}
	const maxDigits = 16
	if len(digits) == 0 || len(digits) > maxDigits {
		return nil, fmt.Errorf("%q: want 1 to %d hexadecimal digits, have %d; for a name use --hex=false", text, maxDigits, len(digits))
	}
	key, err := leasehold.ParseKey(strings.Repeat("0", maxDigits-len(digits)) + digits)
	if err != nil {
		return nil, fmt.Errorf("%q: want hexadecimal digits; for a name use --hex=false", text)
	}
	k.Key = key
	return k, nil
}

// Text formats the key for text output.
func (k *KeyArgument) Text() string {
	if k.Name == "" {
		return k.Key.String()
	}
	return fmt.Sprintf("%s, the hash of %q", k.Key, k.Name)
}

func AddKeyFlag(cmd *cobra.Command) *KeyArgument {
	k := &KeyArgument{cmd: cmd}
	cmd.Flags().BoolVar(&k.hex, "hex", false, "KEY is a key in hexadecimal, not a name")
	return k
}

// timeLayouts are the accepted time formats. A time without a zone is local time.
var timeLayouts = [...]string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "15:04:05", "15:04"}

const SinceHelp = "only events since then: a `time` ago such as 90m, 36h or 7d, or a time such as 2026-11-15, \"2026-11-15 10:20\" or 10:20"

// ParseSince parses a duration before now, or a point in time. A time of day means today.
// For "" it returns the zero time, which means no limit.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	if days, found := strings.CutSuffix(text, "d"); found {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil && n > 0 {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	for _, layout := range timeLayouts {
		at, err := time.ParseInLocation(layout, text, now.Location())
		if err != nil {
			continue
		}
		if strings.HasPrefix(layout, "15:") { // a time of day
			at = time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), 0, now.Location())
		}
		if at.After(now) {
			return time.Time{}, fmt.Errorf("--since %q: the time is in the future", text)
		}
		return at, nil
	}
	return time.Time{}, fmt.Errorf("--since %q: want a time ago such as 90m, 36h or 7d, or a time such as 2026-11-15 or \"2026-11-15 10:20\"", text)
}

// explainFlagError replaces an error of pflag by one that states the accepted values or the
// closest flag name.
func explainFlagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		invalid *pflag.InvalidValueError
	)
	switch given := cmd.Flags().Args(); {
	case !cmd.HasParent() && len(given) > 0: // the flags of a misspelled command are no error: its name is
		return rejectUnknownSubcommand(cmd, given)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		letter := unknown.GetSpecifiedName()
		if long := flagOfLetter(cmd.Root(), letter); long != "" {
			return fmt.Errorf("unknown flag -%s, in other commands --%s; usage: %s", letter, long, cmd.UseLine())
		}
		return fmt.Errorf("unknown flag -%s; %q lists the flags", letter, cmd.CommandPath()+" --help")
	case errors.As(err, &unknown):
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		mistyped := unknown.GetSpecifiedName()
		near := settings.Nearest(mistyped, names, 1)
		if len(near) == 0 {
			return fmt.Errorf("unknown flag --%s; %q lists the flags", mistyped, cmd.CommandPath()+" --help")
		}
		return fmt.Errorf("unknown flag --%s; the closest is --%s", mistyped, near[0])
	case errors.As(err, &invalid):
		flag := invalid.GetFlag()
		if want := settings.Wanted(flag); want != "" {
			return fmt.Errorf("--%s %q: want %s", flag.Name, invalid.GetValue(), want)
		}
		return fmt.Errorf("--%s: %w", flag.Name, invalid.Unwrap())
	}
	return err
}

// flagOfLetter returns the name of the flag with a short form in any command; "" without one.
func flagOfLetter(cmd *cobra.Command, letter string) string {
	if f := cmd.Flags().ShorthandLookup(letter); f != nil {
		return f.Name
	}
	for _, c := range cmd.Commands() {
		if name := flagOfLetter(c, letter); name != "" {
			return name
		}
	}
	return ""
}
