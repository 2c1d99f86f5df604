package etcd

import (
	"sync"

	"github.com/leasehold-dev/leasehold"
	"go.etcd.io/etcd/server/v3/storage/backend"
)

// A room is what is left of a quota. It keeps a reserve for what must be written
// even when there is hardly any: were it used up by tables and their history, a
// leader could not renew its record, and all leases would end.
//
// Its methods may be called from many goroutines at once.
type room struct {
	file  func() backend.Backend // another one after it was rewritten
	quota int64

	mu         sync.Mutex
	size, used int64 // as they were last seen
	since      int64 // what was admitted since they changed
}

// etcd refuses every write once the file has the size of the quota, holes
// included. Before that, nothing that grows is written when so much is in use, or
// when the file has become so large.
func (r *room) mostUsed() int64 { return r.quota / 10 * 9 }
func (r *room) mostSize() int64 { return r.quota / 20 * 19 }

// tight reports whether nothing that grows is written.
func (r *room) tight() bool {
	b := r.file()
	return b.SizeInUse() > r.mostUsed() || b.Size() > r.mostSize()
}

// admit lets so many bytes be written, or says why not. The file's sizes lag
// behind by a tenth of a second, in which much can be written: until they change
// it counts itself.
func (r *room) admit(bytes int) error {
	b := r.file()
	size, used := b.Size(), b.SizeInUse()
	r.mu.Lock()
	defer r.mu.Unlock()
	if size != r.size || used != r.used {
		r.size, r.used, r.since = size, used, 0
	}
	if used+r.since > r.mostUsed() || size+r.since > r.mostSize() {
		return leasehold.Errorf("etcd", leasehold.ErrLimit, "",
			"nothing was written: %d bytes of the quota of %d are in use, and the rest is kept for the leader record; delete namespaces, or start with a larger quota",
			used+r.since, r.quota)
	}
	r.since += int64(bytes)
	return nil
}

// Space returns how many bytes of the member's quota are in use, and how many may be
// before nothing that grows is written. It may be called from many goroutines at once,
// and does not wait.
func (m *Embedded) Space() (used, most int64) {
	r := m.db.room
	b := r.file()
	used, most = b.SizeInUse(), r.mostUsed()
	if b.Size()-r.mostSize() > used-most { // holes count too, once the file is large
		used, most = b.Size(), r.mostSize()
	}
	return max(0, used), most
}
