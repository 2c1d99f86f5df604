// Package view shows a demo to people: live on a terminal, as lines of a log, and its
// result as text.
package view

import (
	"context"
	"errors"
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/leasehold-dev/leasehold/server/demo"
)

// Live runs a demo and shows it on a terminal, until its time is over or the user ends it.
func Live(ctx context.Context, cfg demo.Config, terminal io.Writer) (demo.Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program := tea.NewProgram(model{width: usualWidth, stop: cancel},
		tea.WithOutput(terminal), tea.WithoutSignalHandler()) // signals end the context
	var (
		r    demo.Report
		err  error
		done = make(chan struct{})
	)
	go func() {
		defer close(done)
		r, err = demo.Run(ctx, cfg, func(s demo.Snapshot) { program.Send(s) })
		program.Send(tea.QuitMsg{})
	}()
	_, failure := program.Run()
	cancel() // if the terminal failed, the demo still runs
	<-done
	return r, errors.Join(err, failure)
}

// usualWidth is that of a terminal until its size is known.
const usualWidth = 80

// A model is the state of the terminal, as bubbletea has it: a value that messages turn
// into another.
type model struct {
	snapshot      demo.Snapshot
	width, height int
	stop          func() // ends the demo
	ending        bool
}

func (m model) Init() tea.Cmd { return nil }

func (m model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case demo.Snapshot:
		m.snapshot = message
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case tea.KeyPressMsg:
		switch message.String() {
		case "q", "esc", "ctrl+c":
			m.ending = true
			m.stop()
		}
	}
	return m, nil
}

func (m model) View() tea.View {
	v := tea.NewView(screen(&m.snapshot, m.width, m.height, m.ending))
	v.AltScreen = true
	return v
}
