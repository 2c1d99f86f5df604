package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/console"
)

// Main runs a program and exits with its status. The first SIGINT or SIGTERM cancels the context
// of the command, which prints a summary; the second ends the process at once.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	stopAfterFirstSignal(ctx, stop)
	os.Exit(Run(ctx, root, os.Args[1:], os.Stdout, os.Stderr))
}

// signalGrace is the time in which several signals count as one: timeout(1) sends two, to the
// process and to its group.
const signalGrace = 500 * time.Millisecond

func stopAfterFirstSignal(ctx context.Context, stop func()) {
	context.AfterFunc(ctx, func() { time.AfterFunc(signalGrace, stop) })
}

// Run executes the command that args name, and returns the exit status. When ctx ends, commands
// shut down gracefully.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var (
		ended   Status
		trouble Failed
	)
	switch {
	case err == nil:
		return int(StatusOK)
	case errors.As(err, &ended):
		return int(ended)
	case errors.As(err, &trouble):
		cmd.PrintErrf("%s: %v\n", root.Name(), err)
	default:
		if cmd.Name() == "help" {
			cmd = root
		}
		cmd.PrintErrf("%s: %v\n", root.Name(), err)
		if !strings.Contains(err.Error(), "\n") { // a second line is advice already
			cmd.PrintErrf("Run '%s --help' for usage.\n", cmd.CommandPath())
		}
	}
	return int(StatusTrouble)
}

// NewRoot returns a program without commands. AddGroup adds commands, and Finish completes it.
func NewRoot(name, short, long, example, version string) *cobra.Command {
	root := &cobra.Command{
		Use: name, Short: short, Long: long, Example: example, Version: version,
		// Run prints errors; a usage page would hide them.
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          rejectUnknownSubcommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(explainFlagError)
	root.SetHelpCommand(newHelpCommand())
	return root
}

// Pause sleeps for d, and returns false if the context ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// AddGroup adds commands under one title of the help.
func AddGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title + ":"})
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// Finish adds the commands of cobra to a group.
func Finish(root *cobra.Command, group string) *cobra.Command {
	root.SetCompletionCommandGroupID(group)
	root.SetHelpCommandGroupID(group)
	root.InitDefaultCompletionCmd("completion") // cobra otherwise adds it later, without a group
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short = "Print a shell completion script"
		}
	}
	return root
}

// newHelpCommand replaces cobra's help command, which ignores unknown names; here they are errors.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Show the help of a command",
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			for _, c := range cmd.Root().Commands() {
				if c.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			explained, rest, err := cmd.Root().Find(args)
			if err == nil && explained.HasSubCommands() {
				err = rejectUnknownSubcommand(explained, rest)
			}
			if err != nil {
				return err
			}
			explained.InitDefaultHelpFlag() // cobra adds both only during parsing
			explained.InitDefaultVersionFlag()
			return explained.Help()
		},
	}
}

// A Status is the exit status of a command that ran and printed its result. It is an error so
// that a command can return it.
type Status int

// The exit statuses are a stable interface for scripts.
const (
	StatusOK          Status = 0
	StatusViolated    Status = 1   // an invariant did not hold
	StatusTrouble     Status = 2   // the command failed: wrong flags, no disk space
	statusSurvived    Status = 3   // a planted bug was not detected
	StatusInterrupted Status = 130 // as shells report SIGINT
)

func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Failed is an error that is unrelated to the flags. Errors that are not Failed get a hint to
// --help.
type Failed struct{ error }

func (f Failed) Unwrap() error { return f.error }

// Fail marks an error as unrelated to the flags.
func Fail(err error) error { return Failed{err} }

// Failure is Fail for the result of a call: nil stays nil.
func Failure(err error) error {
	if err == nil {
		return nil
	}
	return Fail(err)
}

// Write writes the output of a command.
func Write(out io.Writer, text string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return Fail(fmt.Errorf("writing the output: %w", err))
	}
	return nil
}

// JSON output follows one rule: numbers that are identifiers rather than amounts (keys, sessions,
// generations, terms, LSNs, ids) are strings, because many JSON readers keep only 53 bits of a
// number. Fields may be added; none is renamed or removed.

// PrintAs writes a document to the output of a command, as JSON or as text.
func PrintAs(cmd *cobra.Command, asJSON bool, document any, text func() string) error {
	c := Client{JSON: asJSON, Out: console.New(cmd.OutOrStdout())}
	return c.Print(document, text)
}

// WriteLine writes a document as one line of JSON, for commands that stream.
func WriteLine(out io.Writer, document any) error {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		panic(err) // documents contain only numbers, strings, lists and structs
	}
	return Write(out, line.String())
}

func Decimal(n uint64) string { return strconv.FormatUint(n, 10) }
