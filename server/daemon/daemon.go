// Package daemon is shared by the long-running subcommands of leasehold: health and metrics pages,
// profiles, traces, notifications of systemd, and the version of the build.
package daemon

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/cli"
)

// ListenOn listens on the address of a flag. It returns nil for an empty address.
func ListenOn(flag, addr string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, leasehold.Errorf("listen", leasehold.ErrUnavailable, addr, "%w\n%s", listenCause(err), listenAdvice(flag, err))
	}
	return l, nil
}

// listenCause strips the address from an error of net.Listen.
func listenCause(err error) error {
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}

func listenAdvice(flag string, err error) string {
	choose := "choose another one with --" + flag + "."
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "Another program uses this address: stop it, or " + choose
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "No interface of this computer has this address: " + choose
	case errors.Is(err, os.ErrPermission):
		return "Ports below 1024 require root: " + choose
	}
	return "Check the address, or " + choose
}

func AddrOf(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}

// Ready notifies systemd that the process is ready, if it runs with Type=notify. The returned
// function notifies it of the shutdown, so that a slow shutdown is not taken for a failure.
func Ready(log *slog.Logger, state string) (stopping func()) {
	notify(log, daemon.SdNotifyReady+"\nSTATUS="+state)
	return func() { notify(log, daemon.SdNotifyStopping) }
}

func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd was not notified", "why", err)
	}
}

// BuildVersion describes this binary, from the build information of the Go toolchain.
func BuildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "leasehold, unknown version"
	}
	return describeBuild(info)
}

func describeBuild(info *debug.BuildInfo) string {
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	words := []string{"leasehold", info.Main.Version}
	if info.Main.Version == "" {
		words[1] = "(devel)"
	}
	if commit := settings["vcs.revision"]; commit != "" {
		words = append(words, "commit "+commit[:min(12, len(commit))])
		if settings["vcs.modified"] == "true" {
			words = append(words, "with changes")
		}
	}
	words = append(words, info.GoVersion)
	if settings["GOOS"] != "" {
		words = append(words, settings["GOOS"]+"/"+settings["GOARCH"])
	}
	return strings.Join(words, " ")
}

// NewVersionCommand is the subcommand "version".
func NewVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this build",
		Long: `Prints one line: the version, the commit if known, the Go release and the target
platform. Please include it in bug reports.`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Write(cmd.OutOrStdout(), BuildVersion()+"\n")
		},
	}
}
