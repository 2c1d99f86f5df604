package cli

import (
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// LogSettings is how a command that runs for long says what happens.
type LogSettings struct {
	Format string // text or json
	Level  string // debug, info, warn or error
}

func logFormats() []string { return []string{"text", "json"} }

func logLevels() []string { return []string{"debug", "info", "warn", "error"} }

// AddFlags adds the flags to those that a file and the environment can set.
func (l *LogSettings) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&l.Format, "log-format", "text", "how to log to stderr: text or json")
	f.StringVar(&l.Level, "log-level", "info", "how much: debug, info, warn or error")
}

// Complete is called when the flags are the command's.
func (l *LogSettings) Complete(cmd *cobra.Command) {
	// The names are those of flags just added, the only thing that can go wrong.
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions(logFormats(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(logLevels(), cobra.ShellCompDirectiveNoFileComp))
}

// Validate names settings as origin does.
func (l *LogSettings) Validate(origin func(flag string) string) error {
	if !slices.Contains(logFormats(), l.Format) {
		return fmt.Errorf("%s %q: want text or json", origin("log-format"), l.Format)
	}
	if !slices.Contains(logLevels(), l.Level) {
		return fmt.Errorf("%s %q: want debug, info, warn or error", origin("log-level"), l.Level)
	}
	return nil
}

// Logger is for settings that are valid.
func (l *LogSettings) Logger(to io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		panic(err) // validate has seen it
	}
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}
