package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/cli"
)

// Options are the flags of "top".
type Options struct {
	*cli.Client
	Once  bool
	Every time.Duration
	Sort  string
}

func (o *Options) Top(ctx context.Context, cmd *cobra.Command) error {
	by, err := sortNamed(o.Sort)
	switch {
	case err != nil:
		return err
	case o.Every < leastEvery:
		return fmt.Errorf("--every %v: want at least %v", o.Every, leastEvery)
	case o.Once:
		return o.topOnce(ctx, by)
	case o.JSON:
		return o.topStream(ctx)
	case !o.Out.Terminal:
		return errors.New("top draws on a terminal, and this is none: say --once or --json")
	}
	return o.topLive(ctx, cmd.OutOrStdout(), by)
}

// topOnce prints one picture.
func (o *Options) topOnce(ctx context.Context, by topSort) error {
	seen, err := (&topLook{Wish: Wish{Namespace: o.Namespace}}).look(ctx, o.Admin)
	switch {
	case err != nil:
		return o.Explain(ctx, err)
	case o.Namespace != "" && seen.absent:
		return cli.Fail(cli.Advised(fmt.Errorf("there is no namespace %q", o.Namespace), cli.CreateIt(o.Namespace)))
	}
	return o.Print(seen, func() string { return topScreen(seen, topView{width: o.Out.Width, sort: by}) })
}

// topStream prints a line of JSON for each look, until it is interrupted, which is
// how it is meant to end.
func (o *Options) topStream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failure error
	s := NewSource(o.Client, o.Every, func(seen *Snapshot) {
		if failure = cli.WriteLine(o.Out, seen); failure != nil {
			cancel()
		}
	})
	s.Run(ctx)
	return failure
}

// topLive draws on the terminal until the user leaves.
func (o *Options) topLive(ctx context.Context, terminal io.Writer, by topSort) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := []tea.ProgramOption{tea.WithOutput(terminal), tea.WithContext(ctx), tea.WithoutSignalHandler()} // signals end the context
	if os.Getenv("NO_COLOR") != "" {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII)) // the library wants a truth value
	}
	var program *tea.Program
	source := NewSource(o.Client, o.Every, func(s *Snapshot) { program.Send(s) })
	program = tea.NewProgram(topModel{
		view:   topView{width: o.Out.Width, sort: by, patience: o.Every + topPatience},
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
		return nil // which is how it is meant to end
	}
	return cli.Fail(err)
}

// leastEvery bounds what looking costs the leader.
const leastEvery = 100 * time.Millisecond
