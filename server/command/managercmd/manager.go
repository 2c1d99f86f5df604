// Package managercmd is the subcommand "manager": it runs a manager, and administers a group of managers.
package managercmd

import (
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/daemon"
	"github.com/leasehold-dev/leasehold/server/managerd"
)

const managerHelp = `Runs a manager: the process that grants leases and sends the lease table to owners and
lookups. Without flags it is a single manager with its tables in a directory: suitable for
trials, and for services that tolerate the downtime of one restart.

Three managers that list each other with --members form a group that tolerates the
failure of one; further ones join a running group with --join. With --etcd the tables are
in an existing etcd cluster, and any number of managers can use it.

With --store flease nothing is stored: the managers listed in --peers elect a leader among
themselves, and a new leader rebuilds the tables from the owners. A majority of the
managers must survive to keep the namespaces: restart only one at a time. A new group
starts when all of them run.

With --tls-dir it uses TLS 1.3 and permits only what the --access file grants: 'leasehold
pki init' creates certificates and such a file. Both are reloaded when they change, except
for the CAs of an embedded store's outgoing connections. Without TLS, plaintext to other
computers requires --insecure, which is only for trusted networks.

Every flag is also an environment variable (--data-dir is LEASEHOLD_DATA_DIR) and a key of
the YAML file in --config or LEASEHOLD_CONFIG (data-dir). Flags override variables,
variables override the file.

It stops on SIGINT (Ctrl-C) or SIGTERM. Owners keep their leases while another manager
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

const groupHelp = `Runs managers, and administers a group of them. Managers with embedded stores form a
group, which works while a majority of its members runs. A new manager joins with
"leasehold manager run --join"; one that failed permanently is removed from the quorum
with "leasehold manager remove".`

// New returns the command.
func New() *cobra.Command {
	return cli.Group("manager", "Run a manager, and administer a group of them", groupHelp,
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
