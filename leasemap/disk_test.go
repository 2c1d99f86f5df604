package leasemap

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A disk is a Store whose calls can be delayed and can fail.
type disk struct {
	mu      sync.Mutex
	rows    map[string]Record
	loads   int
	batches [][]Record // that were saved
	running int        // loads
	most    int        // running at once

	// Called without the lock, before a call; an error of onSave is that of Save. If it wraps errDone the batch is saved.
	onLoad func(name string) error
	onSave func(batch []Record) error
}

var (
	errLost  = errors.New("no reply")                 // nothing was stored
	errDone  = errors.New("no reply, but it is done") // it was stored
	errKnown = leasehold.Errorf("save", leasehold.ErrUnavailable, "", "nothing was stored")
)

func newDisk() *disk { return &disk{rows: make(map[string]Record)} }

func (d *disk) Load(_ context.Context, name string, token Version) (Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loads++
	d.running++
	d.most = max(d.most, d.running)
	defer func() { d.running-- }()
	if f := d.onLoad; f != nil {
		d.mu.Unlock()
		err := f(name)
		d.mu.Lock()
		if err != nil {
			return Record{}, err
		}
	}
	row := d.rows[name]
	if row.Token.Compare(token) > 0 {
		return Record{}, leasehold.Errorf("load", leasehold.ErrStale, name, "token %v is older than %v", token, row.Token)
	}
	row.Name, row.Token = name, token
	d.rows[name] = row
	return row, nil
}

func (d *disk) Save(_ context.Context, batch []Record) (refused []string, err error) {
	d.mu.Lock()
	f := d.onSave
	d.mu.Unlock()
	if f != nil {
		err = f(batch)
	}
	if err != nil && !errors.Is(err, errDone) {
		return nil, err
	}
	return d.write(batch), err
}

// Due implements AlarmStore.
func (d *disk) Due(_ context.Context, keys leasehold.Range, before time.Time, after string, limit int) (names []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, r := range d.rows {
		if !r.Alarm.IsZero() && r.Alarm.Before(before) && keys.Contains(r.Key) && name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), limit)], nil
}

// write stores a batch, also one whose Save has returned already.
func (d *disk) write(batch []Record) (refused []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.batches = append(d.batches, batch)
	for _, r := range batch {
		if d.rows[r.Name].Token.Compare(r.Token) > 0 {
			refused = append(refused, r.Name)
			continue
		}
		d.rows[r.Name] = r
	}
	return refused
}

// set replaces the hooks.
func (d *disk) set(onLoad func(string) error, onSave func([]Record) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onLoad, d.onSave = onLoad, onSave
}

// has reports the stored text of a name, "" if there is none.
func (d *disk) has(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.rows[name].Value)
}
