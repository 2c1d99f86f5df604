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
	"github.com/leasehold-dev/leasehold/secret"
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
	CompleteWith(cmd, "log-format", OneOf(logFormats()...))
	CompleteWith(cmd, "log-level", OneOf(logLevels()...))
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

// maxSecret bounds the file of a secret: what is longer is something else.
const maxSecret = 4096

// ReadPrivate reads a file that others cannot read. Its group may, since that is how
// Kubernetes hands a secret to a process that is not root.
func ReadPrivate(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o027 != 0 {
		return "", fmt.Errorf("others can read or change it: its mode is %04o, want 0600 or 0640; chmod 600 %s", mode.Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err == nil && len(text) > maxSecret {
		err = fmt.Errorf("it has more than %d bytes, and no secret is longer", maxSecret)
	}
	return string(text), err
}

// ReadSecret reads a secret of one line, as people type it.
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

// A secretFlag is a setting that a variable or a file may say. The command line must not:
// every user of the computer can read it, and shells and audits keep it.
type secretFlag struct{ to *secret.Text }

func (f secretFlag) Set(text string) error { *f.to = secret.New(text); return nil }

func (f secretFlag) String() string {
	if f.to == nil { // pflag asks a zero value what a default looks like
		return ""
	}
	return f.to.String()
}

func (secretFlag) Type() string { return "string" }

// AddSecret adds a setting that is a secret. There is no help for it, as there is no such flag.
func AddSecret(flags *pflag.FlagSet, to *secret.Text, name string) {
	flags.Var(secretFlag{to}, name, "")
	flags.Lookup(name).Hidden = true
}

// RefuseOnCommandLine says what to use instead of a flag that is a secret.
func RefuseOnCommandLine(flags *pflag.FlagSet, name, file string) error {
	if f := flags.Lookup(name); f.Changed && settings.Origin(f) == "--"+name {
		return fmt.Errorf("there is no flag --%s, because everybody on this computer can read a command line: put it into a file of mode 0600 and name that with --%s, or into %s; and change it, as it was seen",
			name, file, settings.Variable(name))
	}
	return nil
}

// WithoutLogin refuses a URL with a user and a password in it, and does not repeat it: URLs
// are logged and shown.
func WithoutLogin(url, instead string) error {
	if strings.Contains(url, "@") {
		return errors.New("there is a user or a password in a URL, which is shown and logged: " + instead)
	}
	return nil
}
