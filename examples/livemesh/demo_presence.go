package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/leasehold-dev/leasehold/examples/livemesh/load"
)

// A messenger is the presence of users whose frontends we are. It is the test application
// of PRS, section 7.
type messenger struct {
	site
	load *load.Load
}

// messenger publishes users, and changes and reads them, at a pace that leaves the computer
// to the others.
func (d *demo) messenger(ctx context.Context) (*messenger, error) {
	m := &messenger{site: site{managers: d.fleet.Managers(), log: slog.New(slog.DiscardHandler)}}
	ways, err := m.publishing(ctx, 4, 1, d.fleet.Frontends())
	if err == nil {
		m.load, err = load.Start(context.WithoutCancel(ctx), load.Config{Frontends: ways, Users: 25, Callers: 1, Rate: 50, Seed: d.flags.seed})
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// end ends it. All users must be there then, also those who were lost.
func (m *messenger) end(ctx context.Context) (*load.Report, error) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	report, err := m.load.Finish(ending)
	if err == nil && report.Absent > 0 {
		err = fmt.Errorf("%d of %d users are not there as they were published", report.Absent, report.Users)
	}
	return report, err
}

func (m *messenger) close() { _ = m.site.close() } // nobody asks any more
