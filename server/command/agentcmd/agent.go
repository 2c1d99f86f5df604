// Package agentcmd is the subcommand "agent": the owner and lookup libraries for other languages, as a local process.
package agentcmd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/agent"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/daemon"
)

const agentHelp = `Runs an agent: a local HTTP/JSON API that gives programs in any language the owner and
the lookup library. A program joins a namespace, reads which keys it owns and until when
that is valid, and finds the owners of other keys. Run one on every computer that has such
programs. docs/AGENT.md documents the API; examples/agent has clients in Python and
JavaScript.

By default the agent does not authenticate programs, and listens only on this computer
unless --insecure is set. On a unix: socket the permissions of the file control access.
With --access and --tls-dir it uses TLS, and programs authenticate by certificates: the
access file lists the owners that each may be. The agent authenticates to managers by its
own certificate, and their access file must permit it to be all of these owners.

It stops on SIGINT (Ctrl-C) or SIGTERM, and releases the leases of its programs. If an
agent stops, its programs own nothing after --promise, and join again when it is back.

` + daemon.TracesHelp

const agentExample = `  leasehold agent
  leasehold agent --managers m1:7400,m2:7400,m3:7400 --tls-dir tls --listen unix:/run/leasehold/agent.sock --socket-mode 660
  curl -s 'http://127.0.0.1:7404/v1/namespaces/presence/find?name=alice'
  curl -s http://127.0.0.1:7404/v1/owners -H 'Content-Type: application/json' \
    -d '{"namespace": "presence", "addr": "10.0.0.1:8080"}'`

// agentSettings holds the flags, environment variables and file settings of an agent.
type agentSettings struct {
	daemon.Settings
	agent.Config

	listen     string
	access     string // a file
	mode       string // of a socket, as configured
	socketMode os.FileMode
}

func New() *cobra.Command {
	cfg := &agentSettings{}
	cmd := &cobra.Command{
		Use:     "agent",
		Short:   "Run an agent, for programs in other languages",
		Long:    agentHelp,
		Example: agentExample,
		Args:    cli.NoArguments,
	}
	cfg.addFlags(cmd)
	cfg.CanPrint(cmd, cfg.validate, cfg.run)
	return cmd
}

// addFlags adds the flags in the order of the help.
func (a *agentSettings) addFlags(cmd *cobra.Command) {
	f := a.Begin(cmd)
	f.StringVar(&a.listen, "listen", "127.0.0.1:7404", "listen `address`: host:port of this computer, or unix:/path")
	f.StringSliceVar(&a.Managers, "managers", []string{cli.DefaultManager}, "comma-separated `addresses` of managers, or names such as dns:///host:port")
	f.DurationVar(&a.MaxPromise, "promise", time.Second, "maximum validity of an answer; a transfer of keys waits for as long")
	f.StringVar(&a.mode, "socket-mode", "600", "permissions of a unix: socket, in octal")
	f.StringVar(&a.access, "access", "", "access policy `file`: which programs may be which owners and look up what, in the format of\nthe managers' file; enables TLS with client certificates\n(default: no authentication)")
	f.StringSliceVar(&a.Hosts, "host", nil, "host `name` that the agent accepts, besides localhost and IP addresses")
	f.IntVar(&a.MaxOwners, "max-owners", 64, "maximum number of joined programs")
	f.IntVar(&a.MaxNamespaces, "max-namespaces", 64, "maximum number of namespaces with lookups")
	f.IntVar(&a.MaxStreams, "max-streams", 256, "maximum number of open streams")
	f.IntVar(&a.MaxConns, "max-conns", 1024, "maximum number of connections")
	a.Security.AddFlags(f, a.Origin)
	a.Finish(cmd)
}

// validate checks the settings. Package agent checks its own config.
func (a *agentSettings) validate() error {
	return a.Settings.Validate(a.validateAddresses, a.validateBounds, a.Security.Validate, a.validateAccess)
}

func (a *agentSettings) validateAddresses() error {
	if err := cli.CheckManagers(a.Origin("managers"), a.Managers); err != nil {
		return err
	}
	if err := a.Security.Expose("managers", a.Security.Tls(), a.Managers...); err != nil {
		return err
	}
	if strings.HasPrefix(a.listen, "unix:") || cli.CheckAddr(a.listen) != nil {
		return nil // agent.Listen returns the error
	}
	return a.Security.Expose("listen", a.access != "", a.listen)
}

func (a *agentSettings) validateBounds() error {
	for flag, n := range map[string]int{"max-owners": a.MaxOwners, "max-namespaces": a.MaxNamespaces, "max-streams": a.MaxStreams, "max-conns": a.MaxConns} {
		if n < 1 {
			return fmt.Errorf("%s %d: want 1 or more", a.Origin(flag), n)
		}
	}
	if a.MaxPromise <= 0 {
		return fmt.Errorf("%s %v: want a duration above 0", a.Origin("promise"), a.MaxPromise)
	}
	mode, err := strconv.ParseUint(a.mode, 8, 32)
	if err != nil || mode > 0o777 {
		return fmt.Errorf("%s %q: want permissions in octal, such as 600 or 660", a.Origin("socket-mode"), a.mode)
	}
	a.socketMode = os.FileMode(mode)
	return nil
}

func (a *agentSettings) validateAccess() error {
	switch {
	case a.access == "":
		return nil
	case !a.Security.Tls():
		return fmt.Errorf("%s requires TLS, which authenticates programs: name the agent's certificate with --tls-dir", a.Origin("access"))
	case strings.HasPrefix(a.listen, "unix:"):
		return fmt.Errorf("%s is for TCP: access to a unix: socket is controlled by --socket-mode", a.Origin("access"))
	}
	return nil
}

// protect adds the access policy and TLS to the config of an agent. The caller closes the
// policy, which is nil without access control.
func (a *agentSettings) protect(cfg *agent.Config, keeper *secure.Keeper, log *slog.Logger) (*access.Policy, error) {
	if a.access == "" {
		return nil, nil
	}
	policy, err := access.Open(access.Config{File: a.access, Revoked: keeper.Revoked, Logger: log, Audit: log.With("audit", true)})
	if err != nil {
		return nil, cli.Fail(err)
	}
	cfg.Access, cfg.TLS = policy, keeper.ServerTLS(secure.IfGiven)
	for _, host := range keeper.Describe().Hosts {
		if net.ParseIP(host) == nil {
			cfg.Hosts = append(cfg.Hosts, host)
		}
	}
	return policy, nil
}

// open reads the certificates, if there are any. With an access policy one is required.
func (a *agentSettings) open(log *slog.Logger) (*secure.Keeper, error) {
	if a.access != "" {
		return a.Security.OpenServer(log)
	}
	return a.Security.Open(log)
}

func (a *agentSettings) run(ctx context.Context, out console.Screen, log *slog.Logger) error {
	registry := daemon.NewRegistry()
	keeper, err := a.open(log)
	if err != nil {
		return err
	}
	if keeper != nil {
		defer keeper.Close()
	}
	stopShared, err := a.Start(ctx, "leasehold-agent", log)
	if err != nil {
		return cli.Fail(err)
	}
	defer stopShared()
	cfg := a.Config
	cfg.Credentials, cfg.Build, cfg.Logger = a.Security.Dialling(keeper), daemon.BuildVersion(), log
	cfg.Metrics, cfg.Scrape = registry, daemon.Scrapes(registry, log)
	policy, err := a.protect(&cfg, keeper, log)
	if err != nil {
		return err
	}
	if policy != nil {
		defer policy.Close()
	}
	served, err := agent.New(cfg)
	if err != nil {
		return err
	}
	listener, err := agent.Listen(a.listen, a.Security.Insecure || policy != nil, a.socketMode)
	if err != nil {
		served.Close(ctx)
		if leasehold.KindOf(err) == leasehold.ErrInvalid {
			return err
		}
		return cli.Fail(err)
	}
	at := listener.Addr().String()
	if err := cli.Write(out, a.greeting(listener.Addr().Network(), at)); err != nil {
		_ = listener.Close() // not used yet
		served.Close(ctx)
		return err
	}
	stop := context.AfterFunc(ctx, daemon.Ready(log, "an agent on "+at))
	defer stop()
	return cli.Failure(served.Serve(ctx, listener))
}

func (a *agentSettings) greeting(network, at string) string {
	curl := "curl -s 'http://" + at
	if a.access != "" {
		curl = "curl -s --cacert ca.crt --cert tls.crt --key tls.key 'https://" + at
	}
	if network == "unix" {
		at, curl = "unix:"+at, "curl -s --unix-socket "+at+" 'http://localhost"
	}
	return console.Facts([]console.Entry{
		{"agent", console.Heading(at)},
		{"managers", strings.Join(a.Managers, ", ")},
		{"answers", fmt.Sprintf("valid for up to %v, less the clock drift", a.MaxPromise)},
	}) + "\nTo try next, in another terminal:\n\n" +
		"  " + curl + "/v1/status'\n" +
		"  " + curl + "/v1/namespaces/presence/find?name=alice'\n"
}
