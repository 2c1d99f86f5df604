package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/supervise"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/server/settings"
)

// settingOf marks flags that the environment and a file can also set.
const settingOf = "leasehold_setting"

// AddSettings adds flags that the environment and a file can also set, and the flag that names
// the file.
func AddSettings(cmd *cobra.Command, flags *pflag.FlagSet, file *string) {
	markSettings(flags)
	cmd.Flags().AddFlagSet(flags)
	cmd.Flags().StringVar(file, settings.FileFlag, "", "YAML `file` with settings; its keys are flag names")
}

func markSettings(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = make(map[string][]string)
		}
		f.Annotations[settingOf] = []string{"true"}
	})
}

// IsSetting reports whether the environment and a file can also set a flag.
func IsSetting(f *pflag.Flag) bool { return f.Annotations[settingOf] != nil }

// Fill sets flags of a command from the environment and a file. All commands share one environment
// and one file, so settings of other commands are valid. The variable of a supervisor is not a setting.
func Fill(cmd *cobra.Command, flags *pflag.FlagSet, file string) error {
	return fill(cmd, flags, file, func(v string) bool { return strings.HasPrefix(v, supervise.Variable+"=") })
}

// FillWithChild is Fill for a command that passes its environment to a program of the user: unknown variables are
// that program's.
func FillWithChild(cmd *cobra.Command, flags *pflag.FlagSet, file string) error {
	known := knownSettings(cmd.Root())
	return fill(cmd, flags, file, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !slices.ContainsFunc(append(known, settings.FileFlag), func(flag string) bool { return settings.Variable(flag) == name })
	})
}

// fill ignores some variables.
func fill(cmd *cobra.Command, flags *pflag.FlagSet, file string, ignored func(variable string) bool) error {
	environ, err := failpoint.Environ(os.Environ())
	if err != nil {
		return err
	}
	environ = slices.DeleteFunc(environ, ignored)
	return settings.Fill(flags, settings.Source{File: file, Environ: environ, Known: knownSettings(cmd.Root())})
}

func knownSettings(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if IsSetting(f) {
			names = append(names, f.Name)
		}
	})
	for _, c := range cmd.Commands() {
		names = append(names, knownSettings(c)...)
	}
	return names
}

// LogSettings holds the logging flags of a long-running command.
type LogSettings struct {
	Format string // text or json
	Level  string // debug, info, warn or error
}

func logFormats() []string { return []string{"text", "json"} }

func logLevels() []string { return []string{"debug", "info", "warn", "error"} }

// AddFlags adds the flags to those that a file and the environment can set.
func (l *LogSettings) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&l.Format, "log-format", "text", "log format on stderr: text or json")
	f.StringVar(&l.Level, "log-level", "info", "minimum log level: debug, info, warn or error")
}

// Complete adds shell completion. The command must have the flags already.
func (l *LogSettings) Complete(cmd *cobra.Command) {
	CompleteWith(cmd, "log-format", OneOf(logFormats()...))
	CompleteWith(cmd, "log-level", OneOf(logLevels()...))
}

// Validate validates the settings. origin returns the source of a flag for errors.
func (l *LogSettings) Validate(origin func(flag string) string) error {
	if !slices.Contains(logFormats(), l.Format) {
		return fmt.Errorf("%s %q: want text or json", origin("log-format"), l.Format)
	}
	if !slices.Contains(logLevels(), l.Level) {
		return fmt.Errorf("%s %q: want debug, info, warn or error", origin("log-level"), l.Level)
	}
	return nil
}

// Logger returns a logger. The settings must be valid.
func (l *LogSettings) Logger(to io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		panic(err) // Validate has checked it
	}
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

// maxSecret bounds the size of a secret file; a larger file is not a secret.
const maxSecret = 4096

// ReadPrivate reads a file that is not accessible to other users. Its group may read it:
// Kubernetes passes secrets to non-root processes that way.
func ReadPrivate(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // read-only
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o027 != 0 {
		return "", fmt.Errorf("mode %04o lets other users read or change the file, want 0600 or 0640: run chmod 600 %s", mode.Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err == nil && len(text) > maxSecret {
		err = fmt.Errorf("the file has more than %d bytes, which is too long for a secret", maxSecret)
	}
	return string(text), err
}

// ReadSecret reads a secret of one line.
func ReadSecret(path string) (secret.Text, error) {
	text, err := ReadPrivate(path)
	if err != nil {
		return secret.Text{}, err
	}
	line := strings.TrimRight(text, "\r\n")
	if line == "" || strings.ContainsAny(line, "\r\n") {
		return secret.Text{}, errors.New("want one line with the secret")
	}
	return secret.New(line), nil
}

// A secretFlag is a setting that only the environment or a file may contain. Command lines are
// visible to all users of the computer, and shells and audit logs record them.
type secretFlag struct{ to *secret.Text }

func (f secretFlag) Set(text string) error { *f.to = secret.New(text); return nil }

func (f secretFlag) String() string {
	if f.to == nil { // pflag formats a zero value to find the default
		return ""
	}
	return f.to.String()
}

func (secretFlag) Type() string { return "string" }

// AddSecret adds a secret setting. It is hidden from the help, since it is not usable as a flag.
func AddSecret(flags *pflag.FlagSet, to *secret.Text, name string) {
	flags.Var(secretFlag{to}, name, "")
	flags.Lookup(name).Hidden = true
}

// RefuseOnCommandLine rejects a secret on the command line, and names the alternatives.
func RefuseOnCommandLine(flags *pflag.FlagSet, name, file string) error {
	if f := flags.Lookup(name); f.Changed && settings.Origin(f) == "--"+name {
		return fmt.Errorf("a secret on the command line is visible to every user of this computer: replace it, then use --%s with a file of mode 0600, or %s, instead of --%s",
			file, settings.Variable(name), name)
	}
	return nil
}

// WithoutLogin rejects a URL that contains a user or password. URLs are logged and displayed, so
// the error does not repeat it.
func WithoutLogin(url, instead string) error {
	if strings.Contains(url, "@") {
		return errors.New("a URL contains a user or password, and URLs are logged: " + instead)
	}
	return nil
}
