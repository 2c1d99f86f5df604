package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const backupHelp = `Prints what a group of managers that has lost all of its disks needs to begin
again: how every namespace is configured, and the newest generation that was
granted in it. Keep it in a file, somewhere else; "leasehold restore" reads it.

Leases are not part of it. They last for seconds, and a table of yesterday's
would only be wrong.`

const backupExample = `  leasehold backup > leasehold.backup.json`

func newBackupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "backup",
		Short:   "Print what managers that have lost everything begin again with",
		Long:    backupHelp,
		Example: backupExample,
		Args:    noArguments,
	}
	c := newClient(cmd)
	cmd.RunE = c.run(func(ctx context.Context, _ []string) error {
		saved, err := c.backUp(ctx)
		if err != nil {
			return err
		}
		return write(c.out, jsonText(saved))
	})
	return cmd
}

// backupFormat is the version of what "backup" prints.
const backupFormat = 1

// A backupDocument is what "backup" prints and "restore" reads.
type backupDocument struct {
	Format     int             `json:"leaseholdBackup"`
	Taken      time.Time       `json:"taken"`
	Leader     string          `json:"leader"`
	Namespaces []savedDocument `json:"namespaces"`
}

// A savedDocument is a namespace in a backup.
type savedDocument struct {
	// Newest is the newest generation that was granted.
	Newest *leasehold.Generation `json:"newestGeneration,string"`
	Config json.RawMessage       `json:"config"` // a NamespaceConfig
}

// backUp asks for all that is kept. A table that the managers have not read yet, of a
// namespace just created or after a failover, is waited for.
func (c *client) backUp(ctx context.Context) (saved backupDocument, err error) {
	err = c.ask(ctx, func(ctx context.Context, to admin) error {
		for {
			var unread *leaseholdv1.NamespaceStatus
			saved, unread, err = backUpOnce(ctx, to)
			switch {
			case err != nil || unread == nil:
				return err
			case !timeFor(ctx, unreadAnswer) || !pause(ctx, unreadPause):
				why := cmp.Or(unread.GetProblem(), "they have not read its table yet")
				return leasehold.Errorf("backup", leasehold.Unavailable, unread.GetName(), "the managers do not know its newest generation: %s; try again, with a longer --timeout if that takes its time", why)
			}
		}
	})
	return saved, err
}

const (
	// unreadPause is how long to wait before it is asked again whether tables have been read.
	unreadPause = 100 * time.Millisecond
	// unreadAnswer is how long an answer to that may take.
	unreadAnswer = time.Second
)

// timeFor reports whether there is so much of it.
func timeFor(ctx context.Context, d time.Duration) bool {
	deadline, set := ctx.Deadline()
	return !set || time.Until(deadline) > d
}

// backUpOnce asks one manager for all that is kept, or says of which namespace the table has
// not been read.
func backUpOnce(ctx context.Context, to admin) (saved backupDocument, unread *leaseholdv1.NamespaceStatus, err error) {
	saved = backupDocument{Format: backupFormat, Taken: time.Now().UTC().Truncate(time.Second), Namespaces: []savedDocument{}}
	configured, err := namespaces(ctx, to)
	if err != nil {
		return saved, nil, err
	}
	// Later than the configurations: what was granted meanwhile is older than what
	// this says.
	status, err := to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
	if err != nil {
		return saved, nil, err
	}
	saved.Leader = status.GetLeader()
	newest := make(map[string]*leaseholdv1.NamespaceStatus)
	for _, s := range status.GetNamespaces() {
		newest[s.GetName()] = s
	}
	for _, n := range configured {
		s := newest[n.GetName()]
		if s == nil {
			s = &leaseholdv1.NamespaceStatus{Name: n.GetName()} // they have not begun with it
		}
		if !s.GetReady() {
			return saved, s, nil
		}
		config, err := protojson.Marshal(n)
		if err != nil {
			return saved, nil, err
		}
		newest := leasehold.Generation(max(s.GetNewestGeneration(), n.GetAfterGeneration()))
		saved.Namespaces = append(saved.Namespaces, savedDocument{Newest: &newest, Config: config})
	}
	return saved, nil, nil
}

// config reads a saved namespace, which begins after all that was granted in it by then.
func (s *savedDocument) config() (*leaseholdv1.NamespaceConfig, error) {
	out := &leaseholdv1.NamespaceConfig{}
	if err := protojson.Unmarshal(s.Config, out); err != nil {
		return nil, fmt.Errorf("a namespace of the backup cannot be read: %w", err)
	}
	if s.Newest == nil {
		return nil, fmt.Errorf("the newest generation is missing of namespace %q of the backup", out.GetName())
	}
	out.AfterGeneration = uint64(*s.Newest)
	if _, err := wire.ToNamespace(out); err != nil {
		return nil, err
	}
	return out, nil
}
