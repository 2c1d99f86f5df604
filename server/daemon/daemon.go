// Package daemon is what long-running subcommands of leasehold share: health and metrics pages,
// profiles, traces, the messages to systemd, and the version of the build.
package daemon

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strings"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/cli"
)

// ListenOn listens on the address of a flag; an empty one is nowhere.
func ListenOn(flag, addr string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		hint := "choose another with --" + flag
		if errors.Is(err, os.ErrPermission) {
			hint = "ports below 1024 are for root; " + hint
		}
		return nil, leasehold.Errorf("listen", leasehold.ErrUnavailable, addr, "%w; %s", err, hint)
	}
	return l, nil
}

func AddrOf(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}

// Ready tells systemd, if that started us with Type=notify, that we serve. What is returned
// tells it that we stop; what stops may take its time, and is not to be taken for dead.
func Ready(log *slog.Logger, state string) (stopping func()) {
	notify(log, daemon.SdNotifyReady+"\nSTATUS="+state)
	return func() { notify(log, daemon.SdNotifyStopping) }
}

func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd cannot be told how we are", "why", err)
	}
}

// BuildVersion describes this very binary. Nothing is stamped into it when it
// is built: the Go toolchain already has.
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
		Short: "Say which build this is",
		Long: `Prints one line: the version, the commit if it is known, the Go release and the
platform it was built for. Please put it into bug reports.`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Write(cmd.OutOrStdout(), BuildVersion()+"\n")
		},
	}
}
