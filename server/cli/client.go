package cli

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
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
	// The name is that of a flag just added, the only thing that can go wrong.
	_ = cmd.RegisterFlagCompletionFunc("namespace", c.completeNamespaces)
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

// adminFor returns a client of some managers.
func (c *Client) adminFor(managers []string) (*admin.Client, error) {
	return admin.New(admin.Config{
		Managers: managers, Timeout: c.Timeout, Credentials: c.Security.Dialling(c.Keeper), Token: c.Security.PerRPC(),
	})
}

func (c *Client) validate() error {
	if len(c.Managers) == 0 || len(c.Managers) > admin.MaxManagers {
		return fmt.Errorf("%s: want 1 to %d addresses, have %d", c.origin("managers"), admin.MaxManagers, len(c.Managers))
	}
	for i, addr := range c.Managers {
		c.Managers[i] = strings.TrimSpace(addr)
		if err := CheckAddr(c.Managers[i]); err != nil {
			return fmt.Errorf("%s: %w", c.origin("managers"), err)
		}
	}
	if err := c.Security.Expose(Called(c.origin("managers"), c.Managers, c.Security.Tls())); err != nil {
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
