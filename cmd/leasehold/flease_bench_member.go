package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

// newFleaseBenchMemberCommand is one member of the bench. Its standard input and
// output are for its parent, and it ends with the input.
func newFleaseBenchMemberCommand() *cobra.Command {
	var (
		id          uint32
		list        []string
		sealed, tcp bool
		leases      int
		cfg         = flease.Config{Epsilon: 100 * time.Millisecond}
	)
	cmd := &cobra.Command{
		Use:    "bench-member",
		Short:  "Run a member of the bench",
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			debug.SetGCPercent(gcPercent) // as in the demo: processors are shared here
			members, err := parseMembers(list)
			if err != nil {
				return err
			}
			cfg.Self, cfg.Members = flease.ID(id), members
			cfg.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelError}))
			if sealed {
				cfg.Key = secret.New("a key that is good enough to measure with")
			}
			if tcp {
				cfg.Transport = flease.TCP{}
			}
			if err := runBenchMember(cmd.Context(), cfg, leases, cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
				return failed{err}
			}
			return nil
		},
	}
	cmd.Flags().Uint32Var(&id, "id", 0, "which member this is")
	cmd.Flags().StringSliceVar(&list, "members", nil, "all members")
	cmd.Flags().IntVar(&leases, "leases", 1, "how many leases a batch has")
	cmd.Flags().DurationVar(&cfg.Lease, "lease", time.Second, "how long leases last")
	cmd.Flags().BoolVar(&sealed, "sealed", false, "use a key")
	cmd.Flags().BoolVar(&tcp, "tcp", false, "use connections")
	return cmd
}

// runBenchMember carries out orders until there are no more.
func runBenchMember(ctx context.Context, cfg flease.Config, leases int, orders io.Reader, answers io.Writer) error {
	node, err := flease.Start(cfg)
	if err != nil {
		return err
	}
	m := &benchWorker{node: node, names: make([]string, leases)}
	err = errors.Join(node.Ready(ctx), m.work(ctx, orders, answers))
	ended, cancel := context.WithCancel(context.Background())
	cancel() // the others end, too: there is nobody to wait for
	_ = node.Close(ended)
	return err
}

// A benchWorker acquires and releases batches of resources that are new.
type benchWorker struct {
	node   *flease.Node
	batch  int
	names  []string
	leases []*flease.Lease
}

func (m *benchWorker) work(ctx context.Context, orders io.Reader, answers io.Writer) error {
	m.prepare()
	if _, err := fmt.Fprintf(answers, "done 0\n"); err != nil {
		return err
	}
	for lines := bufio.NewScanner(orders); lines.Scan(); {
		answer := "done"
		if err := m.do(ctx, lines.Text()); err != nil {
			answer = err.Error()
		}
		if _, err := fmt.Fprintf(answers, "%s %d\n", answer, cpuTime()); err != nil {
			return err
		}
	}
	return nil
}

func (m *benchWorker) do(ctx context.Context, order string) (err error) {
	switch order {
	case "cpu": // the answer says it
	case "acquire":
		m.leases, err = m.node.AcquireAll(ctx, m.names)
	case "release":
		err = m.node.ReleaseAll(ctx, m.leases)
		m.prepare()
	default:
		err = fmt.Errorf("there is no order %q", order)
	}
	return err
}

// prepare names the resources of the next batch.
func (m *benchWorker) prepare() {
	m.batch++
	for i := range m.names {
		m.names[i] = fmt.Sprintf("member-%d/batch-%d/%d", m.node.Self(), m.batch, i)
	}
}
