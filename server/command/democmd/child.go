package democmd

import (
	"log/slog"
	"runtime"
	"runtime/debug"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/command/managercmd"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/demo"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// NewDemoManagerCommand is the manager command for a child of the demo: it ends
// with its parent, whatever becomes of that.
func NewDemoManagerCommand() *cobra.Command {
	cmd := managercmd.NewRunCommand()
	cmd.Use, cmd.Short, cmd.Hidden = "demo-manager", "Run a manager of the demo", true
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		go proc.EndWithParent(cmd.InOrStdin())
		return run(cmd, args)
	}
	return cmd
}

// gcPercent is how much garbage a server of the demo makes before it collects
// it, in per cent of what it keeps.
const gcPercent = 400

// NewDemoOwnerCommand is one server of the demo's presence service. Its standard
// output is for its parent.
func NewDemoOwnerCommand() *cobra.Command {
	var (
		name     string
		managers []string
		users    int
		security cli.Security
	)
	cmd := &cobra.Command{
		Use:    "demo-owner",
		Short:  "Run an owner of the demo",
		Hidden: true,
		Args:   cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			go proc.EndWithParent(cmd.InOrStdin())
			// Ten servers share the processors here, and would each have its own
			// elsewhere. One that uses several at a time takes them from the others, and
			// a collection keeps them all busy: it comes a quarter as often.
			debug.SetGCPercent(gcPercent)
			runtime.GOMAXPROCS(1)
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			keeper, err := security.OpenServer(log)
			if err != nil {
				return err
			}
			if keeper != nil {
				defer keeper.Close()
			}
			err = demo.RunOwner(cmd.Context(), demo.OwnerConfig{
				Name: leasehold.OwnerID(name), Managers: managers, Users: users, Keeper: keeper,
				Records: cmd.OutOrStdout(), Logger: log,
			})
			if err != nil {
				return cli.Fail(err)
			}
			return nil
		},
	}
	security.AddFlags(cmd.Flags(), func(flag string) string { return "--" + flag })
	cmd.Flags().StringVar(&name, "name", "", "the owner's name")
	cmd.Flags().StringSliceVar(&managers, "managers", nil, "where managers listen")
	cmd.Flags().IntVar(&users, "users", 0, "how many users there are")
	return cmd
}
