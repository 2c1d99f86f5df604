package proc

import "context"

// The former names of methods, for callers of package child.

func (p *Process) Finish(ctx context.Context) error { return p.Terminate(ctx) }
func (p *Process) Stop() error                      { return p.Pause() }
func (p *Process) GoOn() error                      { return p.Resume() }
func (p *Process) Life() int                        { return p.Incarnation() }
