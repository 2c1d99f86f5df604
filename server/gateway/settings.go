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

The key is the hash of a name in the request, and --key sets where the name is:

  header:X-User   the value of a header
  path:2          a segment of the path: 2 is alice in /users/alice/inbox
  query:user      a query parameter
  cookie:sid      the value of a cookie

With several sources the first that the request contains is used. Servers must take the
key from the same place. Go servers use leasehttp.Middleware, which rejects requests of
other keys; the gateway then looks the owner up again and retries. Other servers read the
key from the header Leasehold-Key, and reject with status 421 and the header
"Leasehold-Refused: not-owner" before they process the request.

If it cannot forward a request, it responds with the header Leasehold-Error and a JSON
body with advice: 400 the key is missing; 413 the body is too long; 503 the key has no
owner, or its owner is overloaded: retry; 502 and 504 the owner did not respond. Requests
that may have been processed are retried only if they are idempotent.

If no manager responds, it continues with the table that it has, and /readyz on
--health-listen reports it. At the start it waits for a manager. On SIGINT (Ctrl-C) or
SIGTERM it waits for requests in flight, for at most --drain.

Plaintext connections to callers and managers on other computers require --insecure, which
is only for trusted networks.

Every flag is also an environment variable (--max-body is LEASEHOLD_MAX_BODY) and a key of
the YAML file in --config or LEASEHOLD_CONFIG. Note that managers have a setting --listen,
too.

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
		Short:   "Run a gateway: an HTTP proxy to the owner of a request's key",
		Long:    gatewayHelp,
		Example: gatewayExample,
		Args:    cli.NoArguments,
	}
	g.AddFlags(cmd)
	g.CanPrint(cmd, g.Validate, g.Run)
	return cmd
}

// Settings holds the flags, environment variables and file settings of a gateway. Validate fills
// in derived values.
type Settings struct {
	daemon.Settings

	managers  []string
	namespace string
	keys      []string
	listen    string // for callers
	health    string // for health and metrics; empty if disabled

	transport leasehttp.TransportConfig
	proxy     leasehttp.ProxyConfig
	drain     time.Duration
	ends      gatewayEnds

	maxBody, replay string // as configured
}

// Limits of a gateway's settings.
const (
	maxGatewayOutstanding = 1 << 20
	maxGatewayAttempts    = 1000
	maxGatewayReplay      = 16 << 20
)

// AddFlags adds the flags in the order of the help.
func (g *Settings) AddFlags(cmd *cobra.Command) {
	f := g.Begin(cmd)
	f.StringSliceVar(&g.managers, "managers", []string{cli.DefaultManager}, "comma-separated `addresses` of managers, or names such as dns:///host:port")
	f.StringVarP(&g.namespace, "namespace", "n", "", "`name` of the namespace of the servers")
	f.StringSliceVar(&g.keys, "key", nil, "source of a request's key: header:NAME, path:NUMBER, query:NAME or cookie:NAME;\nseveral are tried in order")
	f.StringVar(&g.listen, "listen", "127.0.0.1:8080", "listen `address` for callers")
	f.StringVar(&g.health, "health-listen", "127.0.0.1:8081", "listen `address` for health checks (/healthz, /readyz) and /metrics; \"\" for none")
	f.IntVar(&g.transport.MaxOutstanding, "max-outstanding", leasehttp.DefaultMaxOutstanding, "maximum number of requests in flight to one server; others are rejected with 503")
	f.StringVar(&g.maxBody, "max-body", "0", "maximum size of a request body in `bytes`, KiB or MiB; 0 for no limit")
	f.StringVar(&g.replay, "replay", "64KiB", "size of a request body that is buffered for retries with another server, in `bytes`,\nKiB or MiB")
	f.IntVar(&g.transport.Attempts, "attempts", 40, "maximum number of attempts of a request, including lookups of a key without an owner;\n40 take about 23 s")
	f.DurationVar(&g.proxy.Stall, "stall", 5*time.Minute, "timeout of a caller that neither sends its body nor reads its response; 0 for none")
	f.DurationVar(&g.drain, "drain", 25*time.Second, "maximum time to wait for requests in flight at shutdown")
	f.BoolVar(&g.proxy.TrustForwarded, "trust-forwarded", false, "trust X-Forwarded-For of callers, and append to it instead of replacing it. All callers\nmust be trusted proxies")
	g.Security.AddFlags(f, g.Origin)
	g.Security.AddToken(f)
	g.ends.addFlags(f)
	g.Finish(cmd)
	cli.CompleteWith(cmd, "key", cobra.FixedCompletions(
		[]string{"header:", "path:", "query:", "cookie:"}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// Validate checks the settings and fills in derived values. Errors name the setting.
func (g *Settings) Validate() error {
	return g.Settings.Validate(
		g.validateManagers, g.validateAddresses, g.validateKey, g.validateBounds, g.validateSizes, g.Security.Validate, g.validateEnds)
}

func (g *Settings) validateManagers() error {
	if err := cli.CheckManagers(g.Origin("managers"), g.managers); err != nil {
		return err
	}
	if g.namespace == "" {
		return errors.New("--namespace, the namespace of the servers, is missing")
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
			return fmt.Errorf("%s %s is the address of --listen, too: choose another port", g.Origin("health-listen"), g.health)
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
		return errors.New("--key, the source of a request's key, is missing: want header:NAME, path:NUMBER, query:NAME or cookie:NAME")
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
		return fmt.Errorf("%s %v: want a duration, or 0 for no limit", g.Origin("stall"), g.proxy.Stall)
	case g.drain < 0:
		return fmt.Errorf("%s %v: want a duration, or 0 to stop at once", g.Origin("drain"), g.drain)
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
		return fmt.Errorf("%s %s: want at most %dMiB, which is buffered per request", g.Origin("replay"), g.replay, maxGatewayReplay>>20)
	case replay == 0:
		replay = -1 // 0 means the default in the library
	}
	g.transport.Replay = int(replay)
	return nil
}
