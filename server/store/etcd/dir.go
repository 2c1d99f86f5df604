package etcd

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// Files in a data directory.
const (
	markerName = "leasehold.json"    // the marker
	tempName   = markerName + ".tmp" // the next marker, before it is renamed
	lockName   = "leasehold.lock"    // locked by the running process
	etcdName   = "etcd"              // etcd's own
)

// format is the layout version of the directory.
const format = 1

// A marker is the content of leasehold.json.
type marker struct {
	Format  int    `json:"format"`
	Member  string `json:"member"`
	Cluster string `json:"cluster,omitempty"` // empty until the first start has succeeded
	// Group contains the names of all members that were ever in the group, including removed
	// ones.
	Group []string `json:"group,omitempty"`

	// The configuration of the first start, until it has succeeded. A member that crashes while
	// it joins, and restarts without the flag to join, would otherwise bootstrap a second group:
	// two groups, each with a leader, would serve the same owners.
	Members  map[string]string `json:"members,omitempty"`
	Existing bool              `json:"existing,omitempty"`
}

// A dataDir is a locked data directory.
type dataDir struct {
	path   string
	lock   *fileutil.LockedFile
	marker marker
}

// openDir locks a directory and checks that it belongs to this member. It does not change a
// directory that does not. If an earlier first start was interrupted, and this start has no group
// configuration, that of the earlier one is used.
func openDir(cfg *EmbedConfig) (*dataDir, error) {
	path := cfg.Dir
	if err := checkOurs(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, dirError(path, leasehold.ErrUnavailable, "cannot be created: %w\nChoose a directory that this user can create and write.", err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, dirError(path, leasehold.ErrExists, "another process uses it\nStop that process, or choose another directory.")
	}
	if err != nil {
		return nil, dirError(path, leasehold.ErrUnavailable, "cannot be locked: %w\nChoose a directory that this user can write.", err)
	}
	d := &dataDir{path: path, lock: lock}
	if err := d.open(cfg); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// Fresh reports whether a data directory has no group yet: none was bootstrapped or joined with it,
// not even partially. Files such as lost+found are ignored. Foreign files are an error.
func Fresh(dir string) (bool, error) {
	if err := checkOurs(dir); err != nil {
		return false, err
	}
	d := &dataDir{path: dir}
	if _, err := d.read(); err != nil {
		return false, err
	}
	return d.marker.Cluster == "" && len(d.marker.Members) == 0, nil
}

// checkOurs rejects a directory with foreign files.
func checkOurs(path string) error {
	files, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return dirError(path, leasehold.ErrInvalid, "cannot be read as a directory: %w\nChoose a directory that this user can read and write.", err)
	}
	known := []string{lockName, tempName, "lost+found"} // may exist before the marker
	foreign := ""
	for _, f := range files {
		if f.Name() == markerName {
			return nil
		}
		if !slices.Contains(known, f.Name()) {
			foreign = f.Name()
		}
	}
	if foreign != "" {
		return dirError(path, leasehold.ErrInvalid, "it has %q in it and no %s, so that it is not a data directory of ours: choose a new or an empty one", foreign, markerName)
	}
	return nil
}

func (d *dataDir) read() (found bool, err error) {
	text, err := os.ReadFile(filepath.Join(d.path, markerName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, dirError(d.path, leasehold.ErrUnavailable, "%w", err)
	}
	if err := json.Unmarshal(text, &d.marker); err != nil {
		return false, dirError(d.path, leasehold.ErrInvalid, "%s makes no sense: %w; restore it, or start with an empty directory", markerName, err)
	}
	return true, nil
}

func (d *dataDir) open(cfg *EmbedConfig) error {
	found, err := d.read()
	if err != nil {
		return err
	}
	if found {
		if err := d.check(cfg); err != nil {
			return err
		}
	}
	if d.marker.Cluster == "" {
		return d.begin(cfg)
	}
	// Without its data etcd would start anew: as another cluster, or as a member of the same
	// one that has lost its log.
	if err := d.hasData(); err != nil {
		return dirError(d.path, leasehold.ErrInvalid, "its data is gone (%w): restore it from a backup or, in a group, remove the member and add it again with an empty directory", err)
	}
	return d.checkGroup(cfg.Members)
}

// check rejects a marker of another member.
func (d *dataDir) check(cfg *EmbedConfig) error {
	m := &d.marker
	switch {
	case m.Format > format:
		return dirError(d.path, leasehold.ErrInvalid, "it has format %d, and this program knows %d at most: use the newer program that wrote it", m.Format, format)
	case m.Format < 1 || m.Member == "":
		return dirError(d.path, leasehold.ErrInvalid, "%s has no format or no member: restore it, or start with an empty directory", markerName)
	case m.Member != cfg.Name:
		return dirError(d.path, leasehold.ErrInvalid, "it belongs to member %q, and this is %q: use that name, or another directory", m.Member, cfg.Name)
	case cfg.Cluster != "" && m.Cluster != "" && m.Cluster != cfg.Cluster:
		return dirError(d.path, leasehold.ErrInvalid, "it belongs to cluster %s, and not to %s: use another directory", m.Cluster, cfg.Cluster)
	}
	return nil
}

// hasData returns an error if etcd's files are missing.
func (d *dataDir) hasData() error {
	_, err := os.Stat(filepath.Join(d.etcd(), "member", "wal"))
	return err
}

// identity identifies the directory of etcd's log. A copy has another identity. It is empty if the
// system does not provide one.
func (d *dataDir) identity() string { return fileIdentity(filepath.Join(d.etcd(), "member", "wal")) }

// begin records the group configuration of the first start, or restores that of an interrupted
// one. The marker is one write before etcd writes anything: after a crash the next start finds
// either an unused directory, or the original configuration. It rejects a join of a directory that
// bootstrapped a group, and vice versa.
//
// Later starts use the group in the data, and reject the configuration of another group.
func (d *dataDir) begin(cfg *EmbedConfig) error {
	m := &d.marker
	if len(cfg.Members) == 0 {
		cfg.Members, cfg.Existing = m.Members, m.Existing
		if err := cfg.validate(); err != nil {
			return err
		}
	}
	switch {
	case m.Existing && !cfg.Existing:
		return dirError(d.path, leasehold.ErrInvalid, "its member has begun to join a group, and this start founds one: go on joining, or start with an empty directory")
	case cfg.Existing && !m.Existing && d.hasData() == nil:
		return dirError(d.path, leasehold.ErrInvalid, "its member has begun to found a group, and this start joins one: join with an empty directory")
	case cfg.MustJoin && !cfg.Existing:
		return dirError(d.path, leasehold.ErrInvalid, "it belongs to no group that could be joined, and this start must not found one: join with an empty directory")
	}
	d.marker = marker{Format: format, Member: cfg.Name, Members: cfg.Members, Existing: cfg.Existing}
	return d.save()
}

// checkGroup rejects a member list without any former member of the group, other than this one.
// Membership and addresses may have changed, but a member of one group must not be started as a
// member of another.
func (d *dataDir) checkGroup(members map[string]string) error {
	m := &d.marker
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(members)), func(name string) bool { return name == m.Member })
	known := func(name string) bool { return slices.Contains(m.Group, name) }
	if len(others) == 0 || slices.ContainsFunc(others, known) {
		return nil
	}
	return dirError(d.path, leasehold.ErrInvalid, "its group is that of the members %q, and this start names the others %q: name the members of its group, or none; a new group begins with an empty directory", m.Group, others)
}

// maxGroup bounds the number of recorded member names.
const maxGroup = 64

func (d *dataDir) joined(cluster string, group []string) error {
	m := &d.marker
	met := slices.DeleteFunc(slices.Clone(group), func(name string) bool { return slices.Contains(m.Group, name) })
	if m.Cluster == cluster && len(met) == 0 {
		return nil
	}
	names := slices.Concat(m.Group, met)
	m.Cluster, m.Group, m.Members, m.Existing = cluster, names[max(0, len(names)-maxGroup):], nil, false
	return d.save()
}

// save writes the marker atomically.
func (d *dataDir) save() error {
	text, err := json.MarshalIndent(d.marker, "", "  ")
	if err != nil {
		return dirError(d.path, leasehold.ErrInternal, "%w", err)
	}
	name, temp := filepath.Join(d.path, markerName), filepath.Join(d.path, tempName)
	if err := writeSynced(temp, append(text, '\n')); err != nil {
		return dirError(d.path, leasehold.ErrUnavailable, "%w", err)
	}
	failpoint.Here("etcd/marker-written")
	if err := os.Rename(temp, name); err != nil {
		return dirError(d.path, leasehold.ErrUnavailable, "%w", err)
	}
	failpoint.Here("etcd/marker-renamed")
	dir, err := os.Open(d.path)
	if err != nil {
		return dirError(d.path, leasehold.ErrUnavailable, "%w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func writeSynced(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func (d *dataDir) etcd() string { return filepath.Join(d.path, etcdName) }

func (d *dataDir) close() error { return d.lock.Close() }

func dirError(path string, kind leasehold.Kind, format string, args ...any) error {
	return leasehold.Errorf("open data directory", kind, path, format, args...)
}
