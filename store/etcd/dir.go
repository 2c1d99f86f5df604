package etcd

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// What is in a data directory.
const (
	markerName = "leasehold.json" // says whose it is
	lockName   = "leasehold.lock" // held by the process that uses it
	etcdName   = "etcd"           // etcd's own
)

// format is the version of the directory's layout that this code writes and
// reads.
const format = 1

// A marker is the content of leasehold.json.
type marker struct {
	Format  int    `json:"format"`
	Member  string `json:"member"`
	Cluster string `json:"cluster,omitempty"` // empty until the first start has succeeded
	// Group has the names of the members that this one has met, its own too.
	// Those that were removed since are among them.
	Group []string `json:"group,omitempty"`

	// How the first start was meant, until it has succeeded. Without it a
	// member that is killed while it joins, and is started again without being
	// told that it joins, would form a group of its own: two groups, each with
	// a leader, would serve the same owners.
	Members  map[string]string `json:"members,omitempty"`
	Existing bool              `json:"existing,omitempty"`
}

// A dataDir is a directory that is ours and that nobody else uses.
type dataDir struct {
	path   string
	lock   *fileutil.LockedFile
	marker marker
}

// openDir takes a directory into use, or says why it cannot. In a directory
// that is not this member's it changes nothing.
func openDir(path, member, cluster string) (*dataDir, error) {
	if err := checkOurs(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, dirError(path, leasehold.Unavailable, "cannot be created: %w", err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, dirError(path, leasehold.Exists, "another process uses it: stop that one, or give this one a directory of its own")
	}
	if err != nil {
		return nil, dirError(path, leasehold.Unavailable, "cannot be locked: %w", err)
	}
	d := &dataDir{path: path, lock: lock}
	if err := d.open(member, cluster); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// checkOurs refuses a directory that has something else in it.
func checkOurs(path string) error {
	files, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return dirError(path, leasehold.Invalid, "cannot be read as a directory: %w", err)
	}
	known := []string{lockName, "lost+found"} // what may be there before the marker is
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
		return dirError(path, leasehold.Invalid, "it has %q in it and no %s, so that it is not a data directory of ours: choose a new or an empty one", foreign, markerName)
	}
	return nil
}

// open reads the marker, or writes the first.
func (d *dataDir) open(member, cluster string) error {
	text, err := os.ReadFile(filepath.Join(d.path, markerName))
	if errors.Is(err, fs.ErrNotExist) {
		d.marker = marker{Format: format, Member: member}
		return d.save()
	}
	if err != nil {
		return dirError(d.path, leasehold.Unavailable, "%w", err)
	}
	m := &d.marker
	if err := json.Unmarshal(text, m); err != nil {
		return dirError(d.path, leasehold.Invalid, "%s makes no sense: %w; restore it, or start with an empty directory", markerName, err)
	}
	switch {
	case m.Format > format:
		return dirError(d.path, leasehold.Invalid, "it has format %d, and this program knows %d at most: use the newer program that wrote it", m.Format, format)
	case m.Format < 1 || m.Member == "":
		return dirError(d.path, leasehold.Invalid, "%s has no format or no member: restore it, or start with an empty directory", markerName)
	case m.Member != member:
		return dirError(d.path, leasehold.Invalid, "it belongs to member %q, and this is %q: use that name, or another directory", m.Member, member)
	case cluster != "" && m.Cluster != "" && m.Cluster != cluster:
		return dirError(d.path, leasehold.Invalid, "it belongs to cluster %s, and not to %s: use another directory", m.Cluster, cluster)
	}
	if m.Cluster == "" {
		return nil
	}
	// Without its data etcd would begin anew, as another cluster or as an
	// amnesiac of the same.
	if _, err := os.Stat(filepath.Join(d.etcd(), "member", "wal")); err != nil {
		return dirError(d.path, leasehold.Invalid, "its data is gone (%w): restore it from a backup or, in a group, remove the member and add it again with an empty directory", err)
	}
	return nil
}

// joining notes how the first start is meant, or, if this start does not say,
// reminds it of what an earlier one said. Later starts go on with the group that
// the data knows, whatever they say: one that speaks of another is refused.
func (d *dataDir) joining(cfg *EmbedConfig) error {
	m := &d.marker
	if m.Cluster != "" {
		return d.checkGroup(cfg.Members)
	}
	if len(cfg.Members) == 0 {
		cfg.Members, cfg.Existing = m.Members, m.Existing
		return cfg.validate()
	}
	m.Members, m.Existing = cfg.Members, cfg.Existing
	return d.save()
}

// checkGroup refuses members none of whom, but for this one, was ever in its
// group. Who is in it may have changed, and where they are may have; but a member
// that goes on with a group of its own must not be taken for one of another.
func (d *dataDir) checkGroup(members map[string]string) error {
	m := &d.marker
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(members)), func(name string) bool { return name == m.Member })
	known := func(name string) bool { return slices.Contains(m.Group, name) }
	if len(others) == 0 || slices.ContainsFunc(others, known) {
		return nil
	}
	return dirError(d.path, leasehold.Invalid, "its group is that of the members %q, and this start names the others %q: name the members of its group, or none; a new group begins with an empty directory", m.Group, others)
}

// maxGroup bounds how many names are kept of a group whose members come and go.
const maxGroup = 64

// joined notes the cluster that the member belongs to, and who else does.
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

// save writes the marker so that after a crash it is either the old or the new
// one.
func (d *dataDir) save() error {
	text, err := json.MarshalIndent(d.marker, "", "  ")
	if err != nil {
		return dirError(d.path, leasehold.Internal, "%w", err)
	}
	name := filepath.Join(d.path, markerName)
	if err := writeSynced(name+".tmp", append(text, '\n')); err != nil {
		return dirError(d.path, leasehold.Unavailable, "%w", err)
	}
	if err := os.Rename(name+".tmp", name); err != nil {
		return dirError(d.path, leasehold.Unavailable, "%w", err)
	}
	dir, err := os.Open(d.path)
	if err != nil {
		return dirError(d.path, leasehold.Unavailable, "%w", err)
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
