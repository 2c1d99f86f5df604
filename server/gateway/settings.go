package gateway

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/daemon"
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

// NewCommand is the subcommand "gateway".
func NewCommand() *cobra.Command {
	g := &Settings{}
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

// Settings is what flags, the environment and a file say about how to run
// a gateway. Once validated, what can be derived is filled in.
type Settings struct {
	daemon.Settings

	managers  []string
	namespace string
	keys      []string
	listen    string // where callers connect
	health    string // where health is served; empty for nowhere

	transport leasehttp.TransportConfig
	proxy     leasehttp.ProxyConfig
	drain     time.Duration
	ends      gatewayEnds

	maxBody, replay string // as they were written
}

// Bounds on what a gateway may be configured to.
const (
	maxGatewayOutstanding = 1 << 20
	maxGatewayAttempts    = 1000
	maxGatewayReplay      = 16 << 20
)

// AddFlags is in the order in which the help lists them.
func (g *Settings) AddFlags(cmd *cobra.Command) {
	f := g.Begin(cmd)
	f.StringSliceVar(&g.managers, "managers", []string{cli.DefaultManager}, "`addresses` of managers, with commas between")
	f.StringVarP(&g.namespace, "namespace", "n", "", "the `name` of the namespace whose servers are behind the gateway")
	f.StringSliceVar(&g.keys, "key", nil, "where the key of a request is: header:NAME, path:NUMBER, query:NAME or cookie:NAME;\nseveral are tried in order")
	f.StringVar(&g.listen, "listen", "127.0.0.1:8080", "the `address` where callers connect")
	f.StringVar(&g.health, "health-listen", "127.0.0.1:8081", "the `address` for health checks, /healthz and /readyz, and for /metrics; \"\" for none")
	f.IntVar(&g.transport.MaxOutstanding, "max-outstanding", leasehttp.DefaultMaxOutstanding, "how many requests may be under way to one server; more are refused with 503")
	f.StringVar(&g.maxBody, "max-body", "0", "how long the body of a request may be, in `bytes`, KiB or MiB; 0 for no bound")
	f.StringVar(&g.replay, "replay", "64KiB", "how much of a request's body is kept, in `bytes`, KiB or MiB, so that it can be sent to\nanother server if the first one refuses it")
	f.IntVar(&g.transport.Attempts, "attempts", 40, "how often a request is sent at most, or its key looked up while nobody owns it; 40\ntake about 23 s")
	f.DurationVar(&g.proxy.Stall, "stall", 5*time.Minute, "how long a caller may keep its request waiting, while it sends its body or takes its\nanswer; 0 for no bound")
	f.DurationVar(&g.drain, "drain", 25*time.Second, "how long requests may go on when the gateway is stopped")
	f.BoolVar(&g.proxy.TrustForwarded, "trust-forwarded", false, "believe callers where their requests are from: X-Forwarded-For is added to, not\nreplaced. All callers must be proxies that can be trusted")
	g.Security.AddFlags(f, g.Origin)
	g.Security.AddToken(f)
	g.ends.addFlags(f)
	g.Finish(cmd)
	cli.CompleteWith(cmd, "key", cobra.FixedCompletions(
		[]string{"header:", "path:", "query:", "cookie:"}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// Validate says what is wrong with the settings, in terms of settings, and fills
// in what can be derived.
func (g *Settings) Validate() error {
	return g.Settings.Validate(
		g.validateManagers, g.validateAddresses, g.validateKey, g.validateBounds, g.validateSizes, g.Security.Validate, g.validateEnds)
}

func (g *Settings) validateManagers() error {
	if err := cli.CheckManagers(g.Origin("managers"), g.managers); err != nil {
		return err
	}
	if g.namespace == "" {
		return errors.New("say with --namespace whose servers are behind the gateway")
	}
	return leasehold.Namespace(g.namespace).Validate()
}

func (g *Settings) validateAddresses() error {
	if err := cli.CheckAddr(g.listen); err != nil {
		return fmt.Errorf("%s: %w", g.Origin("listen"), err)
	}
	if g.health != "" {
		if err := cli.CheckAddr(g.health); err != nil {
			return fmt.Errorf("%s: %w", g.Origin("health-listen"), err)
		}
		if _, port, err := net.SplitHostPort(g.listen); err == nil && g.health == g.listen && port != "0" {
			return fmt.Errorf("%s %s: that is where callers connect; give it a port of its own", g.Origin("health-listen"), g.health)
		}
	}
	if err := g.Security.Expose("managers", g.Security.Tls(), g.managers...); err != nil {
		return err
	}
	if err := g.Security.Expose("listen", g.ends.frontTLS, g.listen); err != nil {
		return err
	}
	return g.Security.Expose("health-listen", g.ends.healthTLS, g.health)
}

func (g *Settings) validateKey() error {
	if len(g.keys) == 0 {
		return errors.New("say with --key where the key of a request is: header:NAME, path:NUMBER, query:NAME or cookie:NAME")
	}
	var err error
	if g.transport.Key, err = leasehttp.ParseSource(strings.Join(g.keys, ",")); err != nil {
		return fmt.Errorf("%s: %w", g.Origin("key"), err)
	}
	return nil
}

func (g *Settings) validateBounds() error {
	for _, bound := range []struct {
		flag        string
		value, most int
	}{
		{"max-outstanding", g.transport.MaxOutstanding, maxGatewayOutstanding},
		{"attempts", g.transport.Attempts, maxGatewayAttempts},
	} {
		if bound.value < 1 || bound.value > bound.most {
			return fmt.Errorf("%s %d: want 1 to %d", g.Origin(bound.flag), bound.value, bound.most)
		}
	}
	switch {
	case g.proxy.Stall < 0:
		return fmt.Errorf("%s %v: want a time, or 0 for no bound", g.Origin("stall"), g.proxy.Stall)
	case g.drain < 0:
		return fmt.Errorf("%s %v: want a time, or 0 to stop at once", g.Origin("drain"), g.drain)
	}
	return nil
}

func (g *Settings) validateSizes() (err error) {
	if g.proxy.MaxBody, err = cli.ParseBytes(g.maxBody); err != nil {
		return fmt.Errorf("%s: %w", g.Origin("max-body"), err)
	}
	replay, err := cli.ParseBytes(g.replay)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", g.Origin("replay"), err)
	case replay > maxGatewayReplay:
		return fmt.Errorf("%s %s: want at most %dMiB, which may be kept for each request", g.Origin("replay"), g.replay, maxGatewayReplay>>20)
	case replay == 0:
		replay = -1 // to the library 0 is the default
	}
	g.transport.Replay = int(replay)
	return nil
}
