// Package gatewaycmd is the subcommand "gateway": an HTTP proxy that sends each request to the owner of its key.
package gatewaycmd

import (
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/daemon"
	"github.com/leasehold-dev/leasehold/server/gateway"
)

const gatewayHelp = `Runs a gateway: a reverse proxy that forwards each HTTP request to the server that
owns its key. Callers in any language use it in place of a load balancer. WebSockets
and streams pass through.

The key is the hash of a name in the request, and --key says where that is:

  header:X-User   the value of a header
  path:2          a segment of the path: 2 is alice in /users/alice/inbox
  query:user      a parameter of the query
  cookie:sid      the value of a cookie

Several can be given; the first that is in a request is taken. Servers must take the
key from the same place: those in Go with leasehttp.Middleware, which refuses what
is not theirs, so that the gateway looks again and sends it to another. Others find
the key in the header Leasehold-Key, and refuse with status 421 and the header
"Leasehold-Refused: not-owner" before they have done anything.

What it cannot forward it answers itself, with the header Leasehold-Error and a body
of JSON that says what to do: 400 the key is missing; 413 the body is too long; 503
nobody owns the key, or its owner has too much to do: try again; 502 and 504 the owner
did not answer. Requests that may have been carried out are sent again only if they are
idempotent.

If no manager can be reached, it goes on with the table that it has, and /readyz on
--health-listen says so. It waits for a manager when it starts. On Ctrl-C or SIGTERM it
lets requests finish, for --drain at most.

Callers and managers that are not on this computer are spoken to in plain text only with
--insecure, which is for networks that can be trusted.

Every flag can also be set by a variable, --max-body by LEASEHOLD_MAX_BODY, and by a
YAML file that --config or LEASEHOLD_CONFIG names. Mind that --listen is a setting of
managers, too.

` + daemon.TracesHelp

const gatewayExample = `  leasehold gateway -n presence --key header:X-User
  curl -H 'X-User: alice' http://127.0.0.1:8080/status
  leasehold gateway -n presence --key path:2 --key cookie:sid --listen :8080 --insecure \
    --managers m1.example.com:7400,m2.example.com:7400,m3.example.com:7400`

func New() *cobra.Command {
	g := &gateway.Settings{}
	cmd := &cobra.Command{
		Use:     "gateway",
		Short:   "Run a gateway: HTTP to the owner of a request's key",
		Long:    gatewayHelp,
		Example: gatewayExample,
		Args:    cli.NoArguments,
	}
	g.AddFlags(cmd)
	g.CanPrint(cmd, g.Validate, g.Run)
	return cmd
}
