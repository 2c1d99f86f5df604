package main

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
	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/console"
)

const defaultManager = "127.0.0.1:7400"

// A client is what the commands share that ask a running manager: where it is,
// how long to wait, and how to show the answer.
type client struct {
	settings  *pflag.FlagSet
	file      string
	managers  []string
	namespace string
	timeout   time.Duration
	json      bool

	security securitySettings
	keeper   *secure.Keeper // nil for plain text
	admin    *admin.Client  // set while a command runs

	out, errs console.Screen
}

// newClient adds the flags that all such commands have.
func newClient(cmd *cobra.Command) *client {
	c := &client{settings: pflag.NewFlagSet("client", pflag.ContinueOnError)}
	c.settings.StringSliceVar(&c.managers, "managers", []string{defaultManager}, "`addresses` of managers, with commas between; they are tried in turn")
	c.settings.DurationVar(&c.timeout, "timeout", admin.DefaultTimeout, "how long to wait for an answer")
	c.settings.BoolVar(&c.json, "json", false, "print JSON, and nothing else")
	c.security.addFlags(c.settings, c.origin)
	c.security.addToken(c.settings)
	addSettings(cmd, c.settings, &c.file)
	return c
}

// inNamespace adds the flag of commands that are about one namespace.
func (c *client) inNamespace(cmd *cobra.Command, usage string) *client {
	flags := pflag.NewFlagSet("namespace", pflag.ContinueOnError)
	flags.StringVarP(&c.namespace, "namespace", "n", "", usage)
	markSettings(flags)
	c.settings.AddFlagSet(flags)
	cmd.Flags().AddFlagSet(flags)
	// The name is that of a flag just added, the only thing that can go wrong.
	_ = cmd.RegisterFlagCompletionFunc("namespace", c.completeNamespaces)
	return c
}

const usualNamespace = "the `name` of the namespace; not needed if there is only one"

// run makes a function the body of a command: it is called with all settings
// in place.
func (c *client) run(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c.out, c.errs = console.New(cmd.OutOrStdout()), console.New(cmd.ErrOrStderr())
		if err := fill(cmd, c.settings, c.file); err != nil {
			return err
		}
		if err := c.validate(); err != nil {
			return err
		}
		disconnect, err := c.connect()
		if err != nil {
			return err
		}
		defer disconnect()
		return do(cmd.Context(), args)
	}
}

// connect reads the certificates, and makes the client of the managers.
func (c *client) connect() (disconnect func(), err error) {
	if c.keeper, err = c.security.open(nil); err != nil {
		return nil, err
	}
	c.admin, err = c.adminFor(c.managers)
	if err != nil {
		return nil, err
	}
	return func() {
		_ = c.admin.Close() // nothing is in flight
		if c.keeper != nil {
			c.keeper.Close()
		}
	}, nil
}

// adminFor returns a client of some managers.
func (c *client) adminFor(managers []string) (*admin.Client, error) {
	return admin.New(admin.Config{
		Managers: managers, Timeout: c.timeout, Credentials: c.security.dialling(c.keeper), Token: c.security.perRPC(),
	})
}

func (c *client) validate() error {
	if len(c.managers) == 0 || len(c.managers) > admin.MaxManagers {
		return fmt.Errorf("%s: want 1 to %d addresses, have %d", c.origin("managers"), admin.MaxManagers, len(c.managers))
	}
	for i, addr := range c.managers {
		c.managers[i] = strings.TrimSpace(addr)
		if err := checkAddr(c.managers[i]); err != nil {
			return fmt.Errorf("%s: %w", c.origin("managers"), err)
		}
	}
	if err := c.security.expose(called(c.origin("managers"), c.managers, c.security.tls())); err != nil {
		return err
	}
	if c.timeout <= 0 {
		return fmt.Errorf("%s %v: want a time above 0", c.origin("timeout"), c.timeout)
	}
	if c.namespace != "" {
		if err := leasehold.Namespace(c.namespace).Validate(); err != nil {
			return err
		}
	}
	return c.security.validate()
}

func (c *client) origin(flag string) string { return settings.Origin(c.settings.Lookup(flag)) }

// checkAddr reports what keeps addr from being dialled or listened on.
func checkAddr(addr string) error {
	if len(addr) > leasehold.MaxAddrLen {
		return fmt.Errorf("an address of %d bytes: want at most %d", len(addr), leasehold.MaxAddrLen)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q: want host:port, such as %s", addr, defaultManager)
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return fmt.Errorf("%q: want a port from 0 to 65535 after the last colon", addr)
	}
	return nil
}

// print writes the answer: as JSON, or as text for people.
func (c *client) print(document any, text func() string) error {
	if c.json {
		return write(c.out, console.JSON(document))
	}
	return write(c.out, text())
}
