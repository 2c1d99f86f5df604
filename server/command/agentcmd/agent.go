// Package agentcmd is the subcommand "agent": the lookup library for other languages, as a local process.
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

const agentHelp = `Runs an agent: a local HTTP/JSON API that gives programs in any language what the
owner and the lookup library give programs in Go. A program joins a namespace, asks
which keys it owns and for how long that stays true, and finds the owners of others.
Run one on every computer that has such programs. docs/AGENT.md has the API;
examples/agent has clients in Python and JavaScript.

It asks nobody for a password, so that it listens on this computer only, unless
--insecure says otherwise. On a unix: socket the permissions of the file say who may.
With --access and --tls-dir it speaks TLS, and programs show a certificate: each may be
the owners that the file lets it be. To managers the agent shows its own, and their file
must let it be all of these.

It stops on Ctrl-C or SIGTERM, and gives back what its programs own. Programs whose
agent is gone own nothing after --promise, and join again when it is back.

` + daemon.TracesHelp

const agentExample = `  leasehold agent
  leasehold agent --managers m1:7400,m2:7400,m3:7400 --tls-dir tls --listen unix:/run/leasehold/agent.sock --socket-mode 660
  curl -s 'http://127.0.0.1:7404/v1/namespaces/presence/find?name=alice'
  curl -s http://127.0.0.1:7404/v1/owners -H 'Content-Type: application/json' \
    -d '{"namespace": "presence", "addr": "10.0.0.1:8080"}'`

// agentSettings is what flags, the environment and a file say about an agent.
type agentSettings struct {
	daemon.Settings
	agent.Config

	listen     string
	access     string // a file
	mode       string // of a socket, as it was written
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
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cfg.Run(cmd, cfg.validate, cfg.run) }
	return cmd
}

// addFlags is in the order in which the help lists them.
func (a *agentSettings) addFlags(cmd *cobra.Command) {
	f := a.Begin(cmd)
	f.StringVar(&a.listen, "listen", "127.0.0.1:7404", "the `address` to listen on: host:port of this computer, or unix:/path")
	f.StringSliceVar(&a.Managers, "managers", []string{cli.DefaultManager}, "`addresses` of managers, with commas between")
	f.DurationVar(&a.MaxPromise, "promise", time.Second, "for how long an answer may stay true: keys that go to another owner wait for as long")
	f.StringVar(&a.mode, "socket-mode", "600", "the permissions of a unix: socket, in octal")
	f.StringVar(&a.access, "access", "", "a `file` that says which programs may be which owners, and look up what, as that of\nmanagers does; the agent then speaks TLS, and programs show a certificate\n(default whoever reaches the agent may)")
	f.StringSliceVar(&a.Hosts, "host", nil, "a `name` by which programs call the agent, besides localhost and addresses")
	f.IntVar(&a.MaxOwners, "max-owners", 64, "how many programs may have joined at a time")
	f.IntVar(&a.MaxNamespaces, "max-namespaces", 64, "how many namespaces may be looked up at a time")
	f.IntVar(&a.MaxStreams, "max-streams", 256, "how many streams may be open at a time")
	f.IntVar(&a.MaxConns, "max-conns", 1024, "how many connections may be open at a time")
	a.Security.AddFlags(f, a.Origin)
	a.Finish(cmd)
}

// validate says what is wrong in terms of settings; what the agent itself refuses, it
// says as well as we could.
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
		return nil // the agent says what is wrong
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
		return fmt.Errorf("%s %v: want a time above 0", a.Origin("promise"), a.MaxPromise)
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
		return fmt.Errorf("%s says who may do what, and in plain text nobody can show who they are: say with --tls-dir where the agent's certificate is", a.Origin("access"))
	case strings.HasPrefix(a.listen, "unix:"):
		return fmt.Errorf("%s is for programs that come by the network: of a socket the permissions say who may, see --socket-mode", a.Origin("access"))
	}
	return nil
}

// protect adds to the config of an agent who may use it, and over what it serves. Close
// the policy, which is nil if everybody may.
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

// open reads the certificates, if there are any. To be called takes one.
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
		served.Close(ctx)
		_ = listener.Close() // it was never used
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
		{"answers", fmt.Sprintf("stay true for up to %v, less the clocks' drift", a.MaxPromise)},
	}) + "\nTo try next, in another terminal:\n\n" +
		"  " + curl + "/v1/status'\n" +
		"  " + curl + "/v1/namespaces/presence/find?name=alice'\n"
}
