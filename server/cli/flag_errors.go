package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/server/settings"
)

// explainFlagError says what to do about a flag that could not be understood,
// where the flag library says what its parser did.
func explainFlagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		mistyped := unknown.GetSpecifiedName()
		near := settings.Nearest(mistyped, names, 1)
		if len(near) == 0 {
			return fmt.Errorf("there is no flag --%s; %q lists those there are", mistyped, cmd.CommandPath()+" --help")
		}
		return fmt.Errorf("there is no flag --%s; the closest is --%s", mistyped, near[0])
	case errors.As(err, &invalid):
		flag := invalid.GetFlag()
		if want := settings.Wanted(flag); want != "" {
			return fmt.Errorf("--%s %q: want %s", flag.Name, invalid.GetValue(), want)
		}
		return fmt.Errorf("--%s: %w", flag.Name, invalid.Unwrap())
	}
	return err
}
