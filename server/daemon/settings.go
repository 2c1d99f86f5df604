package daemon

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/settings"
)

// Settings holds the settings that all long-running commands share: TLS, log and profiles.
type Settings struct {
	Flags    *pflag.FlagSet // settable by the environment and a file, too
	Security cli.Security
	Log      cli.LogSettings
	Debug    Debug

	file string
}

// Begin returns the flag set, in which flags keep their order for the help.
func (s *Settings) Begin(cmd *cobra.Command) *pflag.FlagSet {
	cmd.Flags().SortFlags = false
	s.Flags = pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	s.Flags.SortFlags = false
	return s.Flags
}

// Finish adds the flags of log and profiles, and adds all flags to the command.
func (s *Settings) Finish(cmd *cobra.Command) {
	s.Log.AddFlags(s.Flags)
	s.Debug.AddFlags(s.Flags)
	cli.AddSettings(cmd, s.Flags, &s.file)
	s.Log.Complete(cmd)
}

// Origin returns the source of a setting, or the flag that sets it.
func (s *Settings) Origin(flag string) string {
	if s.Flags.Changed(flag) {
		return settings.Origin(s.Flags.Lookup(flag))
	}
	return "--" + flag
}

// Validate runs checks and those of log and profiles, and returns the first error.
func (s *Settings) Validate(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	if err := s.Debug.Validate(s.Origin); err != nil {
		return err
	}
	return s.Log.Validate(s.Origin)
}

// Run is the body of a command: it loads and validates the settings, and calls run.
func (s *Settings) Run(cmd *cobra.Command, validate func() error, run func(context.Context, console.Screen, *slog.Logger) error) error {
	if err := cli.Fill(cmd, s.Flags, s.file); err != nil {
		return err
	}
	if err := validate(); err != nil {
		return err
	}
	return run(cmd.Context(), console.New(cmd.OutOrStdout()), s.Log.Logger(cmd.ErrOrStderr()))
}

// CanPrint adds the flag --print-config to a command: it prints the settings, except secrets,
// instead of running.
func (s *Settings) CanPrint(cmd *cobra.Command, validate func() error, run func(context.Context, console.Screen, *slog.Logger) error, secrets ...string) {
	printConfig := cmd.Flags().Bool("print-config", false, "print all settings with their sources, in the format of --config, and exit")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return s.Run(cmd, validate, func(ctx context.Context, out console.Screen, log *slog.Logger) error {
			if !*printConfig {
				return cli.Failure(run(ctx, out, log))
			}
			text, err := settings.Describe(s.Flags, secrets...)
			if err != nil {
				return cli.Fail(err)
			}
			return cli.Write(out, text)
		})
	}
}

// Start warns of plaintext, and starts profiles and traces. The returned function stops them.
func (s *Settings) Start(ctx context.Context, service string, log *slog.Logger) (stop func(), err error) {
	cli.WarnOfPlainText(s.Security.Exposed, log)
	stopDebug, err := s.Debug.Serve(log)
	if err != nil {
		return nil, err
	}
	stopTraces, err := ServeTraces(ctx, service, log)
	if err != nil {
		stopDebug()
		return nil, err
	}
	return func() { stopTraces(); stopDebug() }, nil
}
