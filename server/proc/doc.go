// Package proc starts and ends the processes of a cluster on this computer: for the demo,
// chaos runs, end-to-end tests, benchmarks and examples.
//
// A [Process] is a name whose process is started, paused, killed and started again. It logs to
// a file and cannot outlive its parent.
//
//	p := &proc.Process{Name: "owner-1", Ended: report, Launch: proc.Launch{
//		Program: program, Args: []string{"serve"}, Log: filepath.Join(dir, "owner-1.log"),
//	}}
//	err := p.Start()
//	...
//	p.Kill()                  // kill -9; p.Start() starts it again
//	err = p.Terminate(ctx)    // SIGTERM, and waits
//	p.Close()
//
// [Managers] is a group of manager processes with ports, data directories and log files:
//
//	g, err := proc.NewManagers(proc.ManagersConfig{Program: program, Dir: dir, Count: 3})
//	defer g.Close()
//	err = g.Start(ctx)        // returns when one leads
//	_, err = g.CreateNamespace(ctx, &leaseholdv1.NamespaceConfig{Name: "users"})
//	leader, _, err := g.Leader(ctx)
//	leader.Kill()
//	leader, err = g.WaitForLeader(ctx)
//
// A [Client] calls the managers of a group that may be anywhere, and any of which may be dead.
package proc
