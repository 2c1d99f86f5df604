// Package managercmd is the subcommand "manager": it runs a manager with its store and pages, and looks after a group of managers.
package managercmd

import (
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/daemon"
	"github.com/leasehold-dev/leasehold/server/managerd"
)

const managerHelp = `Runs a manager: the process that grants leases and tells owners and lookups about
them. With no flags it keeps its tables itself, in a directory, and is alone: good
for trying things out, and for a service that can wait for one restart.

Three managers that name each other with --members form a group that survives the
loss of one; a further one joins a running group with --join. With --etcd the
tables are in an etcd cluster that you already run, and any number of managers
can stand in front of it.

With --store flease nothing is kept anywhere: the managers that --peers names agree
among themselves who leads, and a new leader asks the owners what they have. A
majority of them must live, and remember the namespaces: do not restart more than
one at a time. A new group begins when all of them are up.

With --tls-dir it speaks TLS 1.3, and does for everybody what the file of --access
permits: 'leasehold pki init' makes certificates and such a file. Both are read again
when they change, but for whom an embedded store trusts when it connects to others.
Without, what is not on this computer is spoken to in plain text only with --insecure,
which is for networks that can be trusted.

Every flag can also be set by a variable, --data-dir by LEASEHOLD_DATA_DIR, and by
a YAML file that --config or LEASEHOLD_CONFIG names, with the key data-dir. Flags
prevail over variables, variables over the file.

It stops on Ctrl-C or SIGTERM. Owners keep their leases while another manager
takes over.

` + daemon.TracesHelp

const managerExample = `  leasehold manager run                                   # alone, in ./leasehold.data
  leasehold manager run --listen :7400 --advertise m1.example.com:7400 --name m1 \
    --members m1=m1.example.com:7402,m2=m2.example.com:7402,m3=m3.example.com:7402 \
    --tls-dir pki/manager/m1 --access pki/access.yaml
  leasehold manager run --listen :7400 --advertise m4.example.com:7400 --name m4 \
    --peer-listen :7402 --join m1.example.com:7400 --tls-dir pki/manager/m4 --access pki/access.yaml
  leasehold manager run --etcd https://10.0.0.1:2379,https://10.0.0.2:2379,https://10.0.0.3:2379
  leasehold manager run --store flease --listen 127.0.0.1:7501 --http 127.0.0.1:7511 \
    --peers 127.0.0.1:7501,127.0.0.1:7502,127.0.0.1:7503`

const groupHelp = `Runs managers, and looks after a group of them: managers that keep the lease tables
themselves form a group, which works while more than half of its members do. A new one
joins with "leasehold manager run --join"; one that is gone for good is removed with
"leasehold manager remove", so that it no longer counts.`

// New returns the command.
func New() *cobra.Command {
	return cli.Group("manager", "Run a manager, and look after a group of them", groupHelp,
		NewRunCommand(), newListCommand(), newRemoveCommand(), newBackupCommand(), newRestoreCommand())
}

// NewRunCommand returns the command that runs a manager.
func NewRunCommand() *cobra.Command {
	cfg := &managerd.ManagerSettings{}
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Run a manager",
		Long:    managerHelp,
		Example: managerExample,
		Args:    cli.NoArguments,
	}
	cfg.AddFlags(cmd)
	cfg.CanPrint(cmd, cfg.Validate, cfg.Run, managerd.PasswordFlag)
	return cmd
}
