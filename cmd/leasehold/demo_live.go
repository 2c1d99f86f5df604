package main

import (
	"context"
	"errors"
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/leasehold-dev/leasehold/internal/demo"
)

// draw runs the demo and shows it on a terminal, until its time is over or the
// user has seen enough.
func (o *demoOptions) draw(ctx context.Context, terminal io.Writer) (demo.Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program := tea.NewProgram(demoModel{width: usualWidth, stop: cancel},
		tea.WithOutput(terminal), tea.WithoutSignalHandler()) // signals end the context
	var (
		r    demo.Report
		err  error
		done = make(chan struct{})
	)
	go func() {
		defer close(done)
		r, err = demo.Run(ctx, o.config, func(s demo.Snapshot) { program.Send(s) })
		program.Send(tea.QuitMsg{})
	}()
	_, failure := program.Run()
	cancel() // if the terminal failed, the demo goes on until now
	<-done
	return r, errors.Join(err, failure)
}

// A demoModel is what the terminal shows. It is bubbletea's idea of one: a value
// that messages turn into another.
type demoModel struct {
	snapshot      demo.Snapshot
	width, height int
	stop          func() // ends the demo
	ending        bool
}

func (m demoModel) Init() tea.Cmd { return nil }

func (m demoModel) Update(message tea.Msg) (tea.Model, tea.Cmd) {
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

func (m demoModel) View() tea.View {
	v := tea.NewView(demoScreen(&m.snapshot, m.width, m.height, m.ending))
	v.AltScreen = true
	return v
}
