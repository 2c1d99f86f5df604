package daemon

import (
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/cli"
)

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
