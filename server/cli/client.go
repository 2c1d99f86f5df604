package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerdns"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/settings"
)

const DefaultManager = "127.0.0.1:7400"

// A Client holds the settings and connections of a command that calls running managers.
type Client struct {
	settings  *pflag.FlagSet
	file      string
	Managers  []string
	Namespace string
	Timeout   time.Duration
	JSON      bool

	Security Security
	Keeper   *secure.Keeper // nil for plaintext
	Admin    *admin.Client  // set while a command runs

	Out, Errs console.Screen
}

// NewClient adds the flags shared by all commands that call managers.
func NewClient(cmd *cobra.Command) *Client {
	c := &Client{settings: pflag.NewFlagSet("client", pflag.ContinueOnError)}
	c.settings.StringSliceVar(&c.Managers, "managers", []string{DefaultManager}, "comma-separated `addresses` of managers, tried in order; or a name, such as dns:///host:port")
	c.settings.DurationVar(&c.Timeout, "timeout", admin.DefaultTimeout, "timeout of a request")
	c.settings.BoolVar(&c.JSON, "json", false, "print only JSON")
	c.Security.AddFlags(c.settings, c.origin)
	c.Security.AddToken(c.settings)
	AddSettings(cmd, c.settings, &c.file)
	return c
}

// InNamespace adds the flag --namespace.
func (c *Client) InNamespace(cmd *cobra.Command, usage string) *Client {
	flags := pflag.NewFlagSet("namespace", pflag.ContinueOnError)
	flags.StringVarP(&c.Namespace, "namespace", "n", "", usage)
	markSettings(flags)
	c.settings.AddFlagSet(flags)
	cmd.Flags().AddFlagSet(flags)
	CompleteWith(cmd, "namespace", c.completeNamespaces)
	return c
}

const UsualNamespace = "`name` of the namespace; optional if only one exists"

// Run returns the body of a command. It calls do after it has loaded and validated all
// settings and connected.
func (c *Client) Run(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c.Out, c.Errs = console.New(cmd.OutOrStdout()), console.New(cmd.ErrOrStderr())
		if err := Fill(cmd, c.settings, c.file); err != nil {
			return err
		}
		if err := c.validate(); err != nil {
			return err
		}
		disconnect, err := c.Connect()
		if err != nil {
			return err
		}
		defer disconnect()
		return do(cmd.Context(), args)
	}
}

// Connect reads the certificates and creates the admin client.
func (c *Client) Connect() (disconnect func(), err error) {
	if c.Keeper, err = c.Security.Open(nil); err != nil {
		return nil, err
	}
	c.Admin, err = c.adminFor(c.Managers)
	if err != nil {
		return nil, err
	}
	return func() {
		_ = c.Admin.Close() // no call is in flight
		if c.Keeper != nil {
			c.Keeper.Close()
		}
	}, nil
}

func (c *Client) adminFor(managers []string) (*admin.Client, error) {
	return admin.New(admin.Config{
		Managers: managers, Timeout: c.Timeout, Credentials: c.Security.Dialling(c.Keeper), Token: c.Security.PerRPC(),
	})
}

func (c *Client) validate() error {
	if err := CheckManagers(c.origin("managers"), c.Managers); err != nil {
		return err
	}
	if err := c.Security.Expose("managers", c.Security.Tls(), c.Managers...); err != nil {
		return err
	}
	if c.Timeout <= 0 {
		return fmt.Errorf("%s %v: want a duration above 0", c.origin("timeout"), c.Timeout)
	}
	if c.Namespace != "" {
		if err := leasehold.Namespace(c.Namespace).Validate(); err != nil {
			return err
		}
	}
	return c.Security.Validate()
}

func (c *Client) origin(flag string) string { return settings.Origin(c.settings.Lookup(flag)) }

// CheckManagers trims and validates the addresses of managers.
func CheckManagers(origin string, managers []string) error {
	if len(managers) == 0 || len(managers) > admin.MaxManagers {
		return fmt.Errorf("%s: want 1 to %d addresses, have %d", origin, admin.MaxManagers, len(managers))
	}
	for i, addr := range managers {
		managers[i] = strings.TrimSpace(addr)
		check := CheckAddr
		if strings.Contains(managers[i], "://") {
			check = func(target string) error { return managerdns.Check(target, DefaultManager) }
		}
		if err := check(managers[i]); err != nil {
			return fmt.Errorf("%s: %w", origin, err)
		}
	}
	return nil
}

// CheckAddr validates an address to dial or to listen on.
func CheckAddr(addr string) error {
	if len(addr) > leasehold.MaxAddrLen {
		return fmt.Errorf("address of %d bytes: want at most %d", len(addr), leasehold.MaxAddrLen)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q: want host:port, such as %s", addr, DefaultManager)
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return fmt.Errorf("%q: want a port from 0 to 65535 after the last colon", addr)
	}
	return nil
}

// Print writes the response as JSON or as text.
func (c *Client) Print(document any, text func() string) error {
	if c.JSON {
		return Write(c.Out, console.JSON(document))
	}
	return Write(c.Out, text())
}

// Service is the gRPC client of a manager, for methods that package admin does not wrap.
type Service = leaseholdv1.AdminServiceClient

// Within resolves the namespace of a command and calls f with it.
func Within[T any](ctx context.Context, c *Client, f func(ctx context.Context, namespace string) (T, error)) (answer T, err error) {
	if err = c.chooseNamespace(ctx); err == nil {
		answer, err = f(ctx, c.Namespace)
	}
	return answer, c.Explain(ctx, err)
}

// Answer calls a manager in the namespace of the command, and prints the result as JSON or
// as text.
func Answer[T any](ctx context.Context, c *Client, call func(ctx context.Context, namespace string) (T, error), text func(T) string) error {
	answer, err := Within(ctx, c, call)
	if err != nil {
		return err
	}
	return c.Print(answer, func() string { return text(answer) })
}

// Explain adds advice to an error of package admin.
func (c *Client) Explain(ctx context.Context, err error) error {
	var (
		ended       Status
		trouble     Failed
		unreachable *admin.UnreachableError
	)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return StatusInterrupted
	case errors.As(err, &ended) || errors.As(err, &trouble):
		return err
	case errors.As(err, &unreachable):
		return Fail(Advised(err, c.connectAdvice(unreachable.Reasons)))
	}
	return c.explainRefusal(err)
}

func (c *Client) connectAdvice(reasons []string) string {
	if !c.Security.Tls() && slices.ContainsFunc(reasons, func(why string) bool { return strings.Contains(why, wire.RequiresTLS) }) {
		return "The server rejects plaintext. If the managers use TLS, pass your certificate with --tls-dir."
	}
	for _, why := range reasons {
		if c.Security.Tls() && (strings.Contains(why, wire.NoTLS) || strings.Contains(why, wire.PerhapsNoTLS)) {
			return "Start the manager with certificates, or omit them here."
		}
		if advice := SecureAdvice(errors.New(why)); advice != "" && c.Security.Tls() {
			return advice
		}
	}
	if from := c.origin("managers"); from != "default" {
		return fmt.Sprintf("The addresses are from %s. Check that managers listen there and that the network and firewalls permit the connection.", from)
	}
	return "Start a manager with 'leasehold manager run', or set its address with --managers or LEASEHOLD_MANAGERS."
}

func (c *Client) explainRefusal(err error) error {
	var (
		ours    *leasehold.Error
		unknown *admin.UnknownOwnerError
		loss    *admin.LossError
	)
	switch {
	case errors.As(err, &unknown):
		return Fail(noSuchOwner(unknown))
	case errors.As(err, &loss):
		return Fail(wouldLose(loss))
	case errors.As(err, &ours) && ours.Kind == leasehold.ErrNotFound && ours.Subject == c.Namespace && c.Namespace != "" &&
		!strings.Contains(err.Error(), "namespace create"):
		err = Advised(err, CreateIt(c.Namespace))
	case leasehold.KindOf(err) == leasehold.ErrDenied:
		err = Advised(err, SecureAdvice(err))
	case grpcstatus.Code(err) == codes.Unimplemented && strings.Contains(err.Error(), "AdminService"):
		err = Fail(errors.New("this manager, or the leader, is older than this command and does not support the request\nUpgrade the managers."))
	case grpcstatus.Code(err) == codes.Unimplemented:
		err = Advised(err, "The server at this address is not a manager of this version. Managers listen on port 7400 by default.")
	}
	return Fail(err)
}

// Advised appends a line of advice to an error.
func Advised(err error, advice string) error { return fmt.Errorf("%w\n%s", err, advice) }

func CreateIt(namespace string) string {
	return fmt.Sprintf("Create it with 'leasehold namespace create %s', or list the existing ones with 'leasehold namespace list'.", namespace)
}

func wouldLose(loss *admin.LossError) error {
	var unable []string
	for _, owner := range loss.Unable {
		unable = append(unable, console.Shown(owner))
	}
	const maxNames = 5
	if len(unable) > maxNames {
		unable = append(unable[:maxNames], "others")
	}
	because := "no owner can receive it"
	if len(unable) > 0 {
		because = strings.Join(unable, ", ") + " cannot transfer state"
	}
	return fmt.Errorf("%s would lose the state of %s of the keys, because %s\nUse --dry-run to list these keys, or --lose-state to continue.",
		console.Shown(loss.Order), console.Percent(loss.Share), because)
}

// noSuchOwner names the owners whose names are closest to an unknown one.
func noSuchOwner(unknown *admin.UnknownOwnerError) error {
	fail := func(format string, args ...any) error {
		return leasehold.Errorf("", leasehold.ErrNotFound, unknown.Owner, format, args...)
	}
	if len(unknown.Known) == 0 {
		return fail("%s has no owners", unknown.Namespace)
	}
	var names []string
	for _, name := range unknown.Known {
		names = append(names, console.Shown(name))
	}
	const maxProposals = 3
	near := settings.Nearest(unknown.Owner, names, maxProposals)
	if len(near) == 0 {
		return fail("no owner in %s has this name; 'leasehold owner list -n %s' lists the owners", unknown.Namespace, unknown.Namespace)
	}
	return fail("no owner in %s has this name; the closest: %s", unknown.Namespace, strings.Join(near, ", "))
}
