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
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/settings"
)

const DefaultManager = "127.0.0.1:7400"

// A Client is what the commands share that ask a running manager: where it is,
// how long to wait, and how to show the answer.
type Client struct {
	settings  *pflag.FlagSet
	file      string
	Managers  []string
	Namespace string
	Timeout   time.Duration
	JSON      bool

	Security Security
	Keeper   *secure.Keeper // nil for plain text
	Admin    *admin.Client  // set while a command runs

	Out, Errs console.Screen
}

// NewClient adds the flags that all such commands have.
func NewClient(cmd *cobra.Command) *Client {
	c := &Client{settings: pflag.NewFlagSet("client", pflag.ContinueOnError)}
	c.settings.StringSliceVar(&c.Managers, "managers", []string{DefaultManager}, "`addresses` of managers, with commas between; they are tried in turn")
	c.settings.DurationVar(&c.Timeout, "timeout", admin.DefaultTimeout, "how long to wait for an answer")
	c.settings.BoolVar(&c.JSON, "json", false, "print JSON, and nothing else")
	c.Security.AddFlags(c.settings, c.origin)
	c.Security.AddToken(c.settings)
	AddSettings(cmd, c.settings, &c.file)
	return c
}

// InNamespace adds the flag of commands that are about one namespace.
func (c *Client) InNamespace(cmd *cobra.Command, usage string) *Client {
	flags := pflag.NewFlagSet("namespace", pflag.ContinueOnError)
	flags.StringVarP(&c.Namespace, "namespace", "n", "", usage)
	markSettings(flags)
	c.settings.AddFlagSet(flags)
	cmd.Flags().AddFlagSet(flags)
	CompleteWith(cmd, "namespace", c.completeNamespaces)
	return c
}

const UsualNamespace = "the `name` of the namespace; not needed if there is only one"

// Run makes a function the body of a command: it is called with all settings
// in place.
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

// Connect reads the certificates, and makes the client of the managers.
func (c *Client) Connect() (disconnect func(), err error) {
	if c.Keeper, err = c.Security.Open(nil); err != nil {
		return nil, err
	}
	c.Admin, err = c.adminFor(c.Managers)
	if err != nil {
		return nil, err
	}
	return func() {
		_ = c.Admin.Close() // nothing is in flight
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
		return fmt.Errorf("%s %v: want a time above 0", c.origin("timeout"), c.Timeout)
	}
	if c.Namespace != "" {
		if err := leasehold.Namespace(c.Namespace).Validate(); err != nil {
			return err
		}
	}
	return c.Security.Validate()
}

func (c *Client) origin(flag string) string { return settings.Origin(c.settings.Lookup(flag)) }

// CheckManagers trims addresses of managers, and reports what is wrong with them.
func CheckManagers(origin string, managers []string) error {
	if len(managers) == 0 || len(managers) > admin.MaxManagers {
		return fmt.Errorf("%s: want 1 to %d addresses, have %d", origin, admin.MaxManagers, len(managers))
	}
	for i, addr := range managers {
		managers[i] = strings.TrimSpace(addr)
		if err := CheckAddr(managers[i]); err != nil {
			return fmt.Errorf("%s: %w", origin, err)
		}
	}
	return nil
}

// CheckAddr reports what keeps addr from being dialled or listened on.
func CheckAddr(addr string) error {
	if len(addr) > leasehold.MaxAddrLen {
		return fmt.Errorf("an address of %d bytes: want at most %d", len(addr), leasehold.MaxAddrLen)
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

// Print writes the answer: as JSON, or as text for people.
func (c *Client) Print(document any, text func() string) error {
	if c.JSON {
		return Write(c.Out, console.JSON(document))
	}
	return Write(c.Out, text())
}

// Service is the raw service of a manager, for what package admin has no method for.
type Service = leaseholdv1.AdminServiceClient

// Within calls f with the namespace that is meant, of a command that is about one.
func Within[T any](ctx context.Context, c *Client, f func(ctx context.Context, namespace string) (T, error)) (answer T, err error) {
	if err = c.chooseNamespace(ctx); err == nil {
		answer, err = f(ctx, c.Namespace)
	}
	return answer, c.Explain(ctx, err)
}

// Answer prints what ask returns, as JSON or as text.
func Answer[T any](ctx context.Context, c *Client, ask func(ctx context.Context, namespace string) (T, error), text func(T) string) error {
	answer, err := Within(ctx, c, ask)
	if err != nil {
		return err
	}
	return c.Print(answer, func() string { return text(answer) })
}

// Explain adds to an error of package admin what to do about it.
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
		return Fail(fmt.Errorf("%w\n%s", err, c.whereToLook(unreachable.Reasons)))
	}
	return c.explainRefusal(err)
}

// preface is what gRPC says when it is hung up on at once.
const preface = "error reading server preface"

func (c *Client) whereToLook(reasons []string) string {
	if !c.Security.Tls() && slices.ContainsFunc(reasons, func(why string) bool { return strings.Contains(why, preface) }) {
		return "Something is there, and hangs up on plain text: if managers have certificates, say with --tls-dir where ours are."
	}
	for _, why := range reasons {
		if advice := SecureAdvice(errors.New(why)); advice != "" && c.Security.Tls() {
			return advice
		}
	}
	if from := c.origin("managers"); from != "default" {
		return fmt.Sprintf("The addresses are from %s. Is that where managers listen, and can they be reached from here?", from)
	}
	return "Start one with 'leasehold manager run', or say with --managers or LEASEHOLD_MANAGERS where they are."
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
		err = Fail(errors.New("this manager is older than this command, or the one that leads is, and cannot do that: upgrade the managers"))
	case grpcstatus.Code(err) == codes.Unimplemented:
		err = Advised(err, "What answers there is no manager of this version. Managers listen on port 7400 unless told otherwise.")
	}
	return Fail(err)
}

// Advised is an error with a sentence below it that says what to do.
func Advised(err error, advice string) error { return fmt.Errorf("%w\n%s", err, advice) }

func CreateIt(namespace string) string {
	return fmt.Sprintf("Create it with 'leasehold namespace create %s', or see with 'leasehold namespace list' which there are.", namespace)
}

func wouldLose(loss *admin.LossError) error {
	var unable []string
	for _, owner := range loss.Unable {
		unable = append(unable, console.Shown(owner))
	}
	const most = 5 // to name
	if len(unable) > most {
		unable = append(unable[:most], "others")
	}
	because := "nobody is there to take it"
	if len(unable) > 0 {
		because = strings.Join(unable, ", ") + " cannot move any"
	}
	return fmt.Errorf("%s would lose the state of %s of the keys, because %s\nAdd --lose-state if that is meant; --dry-run says which keys they are",
		console.Shown(loss.Order), console.Percent(loss.Share), because)
}

// noSuchOwner says which names are most like one that no owner has.
func noSuchOwner(unknown *admin.UnknownOwnerError) error {
	fail := func(format string, args ...any) error {
		return leasehold.Errorf("", leasehold.ErrNotFound, unknown.Owner, format, args...)
	}
	if len(unknown.Known) == 0 {
		return fail("nobody has joined %s", unknown.Namespace)
	}
	var names []string
	for _, name := range unknown.Known {
		names = append(names, console.Shown(name))
	}
	const most = 3 // to propose
	near := settings.Nearest(unknown.Owner, names, most)
	if len(near) == 0 {
		return fail("no owner in %s has this name; 'leasehold owner list -n %s' lists those there are", unknown.Namespace, unknown.Namespace)
	}
	return fail("no owner in %s has this name; the closest: %s", unknown.Namespace, strings.Join(near, ", "))
}
