package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// backupFormat is the version of the JSON form of a Backup.
const backupFormat = 1

// A Backup has the data with which a new group of managers replaces one that has lost all of its
// disks. It does not contain leases, which expire within seconds.
type Backup struct {
	Format     int              `json:"leaseholdBackup"`
	Taken      time.Time        `json:"taken"`
	Leader     string           `json:"leader"`
	Namespaces []SavedNamespace `json:"namespaces"`
}

// A SavedNamespace is a namespace in a Backup.
type SavedNamespace struct {
	Newest *leasehold.Generation `json:"newestGeneration,string"` // granted
	Config json.RawMessage       `json:"config"`                  // a leasehold.v1.NamespaceConfig in the JSON form of protobuf
}

const (
	unreadPause  = 100 * time.Millisecond // between two requests while a table is not loaded
	unreadAnswer = time.Second            // for the response of the last one
)

// Backup returns the configuration and the newest generation of every namespace. It waits, within the
// timeout, until the managers have loaded all tables.
func (c *Client) Backup(ctx context.Context) (Backup, error) {
	var saved Backup
	err := c.Do(ctx, func(ctx context.Context, s service) (err error) {
		for {
			var unread *leaseholdv1.NamespaceStatus
			saved, unread, err = backup(ctx, s)
			if err != nil || unread == nil {
				return err
			}
			deadline, set := ctx.Deadline()
			if set && time.Until(deadline) < unreadAnswer || !pause(ctx, unreadPause) {
				why := cmp.Or(unread.GetProblem(), "the managers have not loaded its table")
				return leasehold.Errorf("backup", leasehold.ErrUnavailable, unread.GetName(), "its newest generation is not available: %s; try again, if necessary with a longer timeout", why)
			}
		}
	})
	return saved, err
}

func backup(ctx context.Context, s service) (saved Backup, unread *leaseholdv1.NamespaceStatus, err error) {
	saved = Backup{Format: backupFormat, Taken: time.Now().UTC().Truncate(time.Second), Namespaces: []SavedNamespace{}}
	configured, err := s.ListNamespaces(ctx, &leaseholdv1.ListNamespacesRequest{Version: wire.Version})
	if err != nil {
		return saved, nil, err
	}
	// The status is read after the configurations, so that it has all generations of these namespaces.
	status, err := s.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
	if err != nil {
		return saved, nil, err
	}
	saved.Leader = status.GetLeader()
	newest := make(map[string]*leaseholdv1.NamespaceStatus)
	for _, n := range status.GetNamespaces() {
		newest[n.GetName()] = n
	}
	for _, n := range configured.GetNamespaces() {
		is := newest[n.GetName()]
		if is == nil {
			is = &leaseholdv1.NamespaceStatus{Name: n.GetName()}
		}
		if !is.GetReady() {
			return saved, is, nil
		}
		config, err := protojson.Marshal(n)
		if err != nil {
			return saved, nil, err
		}
		generation := leasehold.Generation(max(is.GetNewestGeneration(), n.GetAfterGeneration()))
		saved.Namespaces = append(saved.Namespaces, SavedNamespace{Newest: &generation, Config: config})
	}
	return saved, nil, nil
}

// ParseBackup parses and validates the JSON form of a backup.
func ParseBackup(text []byte) (Backup, error) {
	var saved Backup
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&saved); err != nil {
		return Backup{}, fmt.Errorf("not a backup: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Backup{}, errors.New("not a backup: there is text after the JSON object")
	}
	if saved.Format != backupFormat {
		return Backup{}, fmt.Errorf("not a backup of this version: leaseholdBackup is %d, want %d", saved.Format, backupFormat)
	}
	_, err := saved.configs()
	return saved, err
}

func (b Backup) configs() ([]*leaseholdv1.NamespaceConfig, error) {
	var all []*leaseholdv1.NamespaceConfig
	seen := make(map[string]bool)
	for _, s := range b.Namespaces {
		n := &leaseholdv1.NamespaceConfig{}
		if err := protojson.Unmarshal(s.Config, n); err != nil {
			return nil, fmt.Errorf("invalid namespace in the backup: %w", err)
		}
		switch {
		case s.Newest == nil:
			return nil, fmt.Errorf("namespace %q of the backup has no newest generation", n.GetName())
		case seen[n.GetName()]:
			return nil, fmt.Errorf("the backup has namespace %s twice", n.GetName())
		}
		n.AfterGeneration = uint64(*s.Newest)
		if _, err := wire.ToNamespace(n); err != nil {
			return nil, err
		}
		seen[n.GetName()] = true
		all = append(all, n)
	}
	return all, nil
}

// Restored is the result of Restore.
type Restored struct {
	Restored []string `json:"restored"`
	There    []string `json:"thereAlready"`
}

// Restore creates the namespaces of a backup in a new group. No manager of the lost group may run. New
// generations are higher than all that the lost group can have granted. If wait is not nil, it is called
// before the first namespace is created, with the time after which no lease of the lost group can be valid,
// and returns after that time. If one of the namespaces exists with another configuration, none is created.
// A restore may be repeated.
func (c *Client) Restore(ctx context.Context, b Backup, wait func(context.Context, time.Duration) error) (Restored, error) {
	result := Restored{Restored: []string{}, There: []string{}}
	wanted, err := b.configs()
	if err != nil {
		return result, err
	}
	missing, there, err := c.missingNamespaces(ctx, wanted)
	if err != nil {
		return result, err
	}
	result.There = there
	if len(missing) > 0 && wait != nil {
		longest, err := longestLease(missing)
		if err != nil {
			return result, err
		}
		if err := wait(ctx, longest); err != nil {
			return result, err
		}
	}
	for _, n := range missing {
		n.AfterGeneration = storage.Above(n.GetAfterGeneration(), storage.Clock(time.Now().Unix()), 0)
		err := c.change(ctx, func(ctx context.Context, s service) error {
			_, err := s.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: n})
			return err
		})
		if err != nil {
			return result, fmt.Errorf("restored %d of %d namespaces; the restore can be repeated: %w", len(result.Restored), len(missing), err)
		}
		result.Restored = append(result.Restored, n.GetName())
	}
	return result, nil
}

// missingNamespaces returns the namespaces that do not exist, and the names of those that do.
func (c *Client) missingNamespaces(ctx context.Context, wanted []*leaseholdv1.NamespaceConfig) (missing []*leaseholdv1.NamespaceConfig, there []string, err error) {
	err = c.Do(ctx, func(ctx context.Context, s service) error {
		all, err := s.ListNamespaces(ctx, &leaseholdv1.ListNamespacesRequest{Version: wire.Version})
		if err != nil {
			return err
		}
		now := make(map[string]*leaseholdv1.NamespaceConfig)
		for _, n := range all.GetNamespaces() {
			now[n.GetName()] = n
		}
		missing, there = nil, []string{}
		for _, n := range wanted {
			switch is := now[n.GetName()]; {
			case is == nil:
				missing = append(missing, n)
			case !restoredFrom(is, n):
				return leasehold.Errorf("restore", leasehold.ErrExists, n.GetName(), "the namespace exists and differs from the backup: restore into a group without these namespaces")
			default:
				there = append(there, n.GetName())
			}
		}
		return nil
	})
	return missing, there, err
}

// restoredFrom reports whether a namespace is the result of a restore. Only its first generation differs,
// because it depends on the time of the restore.
func restoredFrom(is, saved *leaseholdv1.NamespaceConfig) bool {
	restored := proto.CloneOf(saved)
	restored.AfterGeneration = is.GetAfterGeneration()
	return is.GetAfterGeneration() >= saved.GetAfterGeneration() && proto.Equal(is, restored)
}

// longestLease returns the longest time that leases of these namespaces can be valid, on any clock.
func longestLease(all []*leaseholdv1.NamespaceConfig) (longest time.Duration, err error) {
	for _, n := range all {
		stored, err := wire.ToNamespace(n)
		if err != nil {
			return 0, err
		}
		longest = max(longest, stored.Drift.Stretch(stored.Lease))
	}
	return longest, nil
}
