// Package top is a live view of a cluster in a terminal: owners, loads, moves and events.
package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

const topHelp = `Shows a namespace live: the leader, the owners with their loads and shares, the transfers
between them, the hottest keys, and the last events; on further pages all ranges, the
lookups, the events, and the history of a key. It refreshes every second, and adapts to
the size of the terminal.

` + topKeysHelp + `

If no manager responds, it shows since when, together with the last known state.

With --once it prints one snapshot and ends, with --json one line of JSON per poll until
it is interrupted, and with both a single line. Without a terminal one of the two is
required.`

// NewCommand is the subcommand "top".
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch a namespace live: owners, loads, moves, events",
		Long:  topHelp,
		Example: `  leasehold top -n presence
  leasehold top --once
  leasehold top --json | jq '.owners | length'`,
		Args: cli.NoArguments,
	}
	o := &options{Client: cli.NewClient(cmd).InNamespace(cmd, "`name` of the namespace to start with (default the first)")}
	cmd.Flags().BoolVar(&o.once, "once", false, "print one snapshot and exit")
	cmd.Flags().DurationVar(&o.every, "every", time.Second, "polling interval")
	cmd.Flags().StringVar(&o.sort, "sort", sorts[0], "sort order of owners: load, share or name")
	cmd.RunE = o.Run(func(ctx context.Context, _ []string) error { return o.top(ctx, cmd) })
	return cmd
}

// options are the flags of "top".
type options struct {
	*cli.Client
	once  bool
	every time.Duration
	sort  string
}

func (o *options) top(ctx context.Context, cmd *cobra.Command) error {
	by, err := sortNamed(o.sort)
	switch {
	case err != nil:
		return err
	case o.every < leastEvery:
		return fmt.Errorf("--every %v: want at least %v", o.every, leastEvery)
	case o.once:
		return o.topOnce(ctx, by)
	case o.JSON:
		return o.topStream(ctx)
	case !o.Out.Terminal:
		return errors.New("top needs a terminal, and the output is not one: use --once or --json")
	}
	return o.topLive(ctx, cmd.OutOrStdout(), by)
}

func (o *options) topOnce(ctx context.Context, by topSort) error {
	seen, err := (&topLook{Wish: Wish{Namespace: o.Namespace}}).look(ctx, o.Admin)
	switch {
	case err != nil:
		return o.Explain(ctx, err)
	case o.Namespace != "" && seen.absent:
		return cli.Fail(cli.Advised(fmt.Errorf("there is no namespace %q", o.Namespace), cli.CreateIt(o.Namespace)))
	}
	return o.Print(seen, func() string { return topScreen(seen, topView{width: o.Out.Width, sort: by}) })
}

// topStream prints a line of JSON per poll until it is interrupted, which is its normal end.
func (o *options) topStream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failure error
	s := NewSource(o.Client, o.every, func(seen *Snapshot) {
		if failure = cli.WriteLine(o.Out, seen); failure != nil {
			cancel()
		}
	})
	s.Run(ctx)
	return failure
}

func (o *options) topLive(ctx context.Context, terminal io.Writer, by topSort) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := []tea.ProgramOption{tea.WithOutput(terminal), tea.WithContext(ctx), tea.WithoutSignalHandler()} // signals cancel the context
	if os.Getenv("NO_COLOR") != "" {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII)) // the library expects a boolean value
	}
	var program *tea.Program
	source := NewSource(o.Client, o.every, func(s *Snapshot) { program.Send(s) })
	program = tea.NewProgram(topModel{
		view:   topView{width: o.Out.Width, sort: by, patience: o.every + topPatience},
		choose: source.Choose,
	}, options...)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		source.Run(ctx)
	}()
	_, err := program.Run()
	interrupted := ctx.Err() != nil
	cancel()
	<-looked
	if interrupted || err == nil {
		return nil // the normal end
	}
	return cli.Fail(err)
}

// leastEvery bounds the load on the leader.
const leastEvery = 100 * time.Millisecond

// A Source polls the managers, and displays the snapshots.
type Source struct {
	client *cli.Client
	every  time.Duration
	show   func(*Snapshot) // called only by Run
	chosen chan Wish       // the data to display

	look topLook
	last *Snapshot
	// heard is the time of the last response, or of the start.
	heard time.Time
}

func NewSource(c *cli.Client, every time.Duration, show func(*Snapshot)) *Source {
	return &Source{
		client: c, every: every, show: show, chosen: make(chan Wish, 1), heard: time.Now(),
		look: topLook{Wish: Wish{Namespace: c.Namespace}, log: &Log{}},
	}
}

// Choose selects the data of the next polls. Only the last of several pending choices counts. It is
// for one goroutine.
func (s *Source) Choose(wish Wish) {
	select {
	case <-s.chosen:
	default:
	}
	s.chosen <- wish
}

// Run polls until the context ends. It waits for its goroutines.
func (s *Source) Run(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { s.watch(ctx) })
	for ctx.Err() == nil {
		seen, err := s.look.look(ctx, s.client.Admin)
		switch {
		case err == nil:
			s.last, s.heard = seen, seen.At
			s.show(seen)
		case ctx.Err() == nil:
			s.missing(s.client.Explain(ctx, err))
		}
		s.pause(ctx)
	}
}

func (s *Source) pause(ctx context.Context) {
	timer := time.NewTimer(s.every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case s.look.Wish = <-s.chosen:
	case <-timer.C:
	}
}

// missing displays the last snapshot again, with the reason why there is no newer one.
func (s *Source) missing(err error) {
	seen := &Snapshot{Owners: []topOwner{}, HotKeys: []admin.HotKey{}, Namespace: s.look.Namespace}
	if s.last != nil {
		*seen = *s.last
	}
	seen.At = time.Now()
	why := strings.Join(strings.Fields(console.Shown(strings.ReplaceAll(err.Error(), "\n", " "))), " ")
	seen.Stale = &staleDocument{Since: s.heard, Why: why}
	s.show(seen)
}

// watchAgain is the delay before a failed watch is retried.
const watchAgain = 500 * time.Millisecond

func (s *Source) watch(ctx context.Context) {
	for ctx.Err() == nil {
		for event, err := range s.client.Admin.Watch(ctx, "") {
			if err == nil {
				s.look.log.take(event)
			}
		}
		cli.Pause(ctx, watchAgain)
	}
}
