package cli

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/server/settings"
)

// settingOf marks flags that the environment and a file can also set.
const settingOf = "leasehold_setting"

// AddSettings gives a command flags that the environment and a file can also set,
// and the flag that names the file.
func AddSettings(cmd *cobra.Command, flags *pflag.FlagSet, file *string) {
	markSettings(flags)
	cmd.Flags().AddFlagSet(flags)
	cmd.Flags().StringVar(file, settings.FileFlag, "", "a YAML `file` with settings; keys are the names of flags")
}

func markSettings(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = make(map[string][]string)
		}
		f.Annotations[settingOf] = []string{"true"}
	})
}

// Fill completes flags of a command from the environment and a file. One environment and one file
// serve all commands: settings of other commands are not mistakes.
func Fill(cmd *cobra.Command, flags *pflag.FlagSet, file string) error {
	environ, err := failpoint.Environ(os.Environ())
	if err != nil {
		return err
	}
	return settings.Fill(flags, settings.Source{File: file, Environ: environ, Known: knownSettings(cmd.Root())})
}

// knownSettings are the settings of a command and of those below it.
func knownSettings(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[settingOf] != nil {
			names = append(names, f.Name)
		}
	})
	for _, c := range cmd.Commands() {
		names = append(names, knownSettings(c)...)
	}
	return names
}
