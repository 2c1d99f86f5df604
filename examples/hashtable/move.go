package main

import (
	"context"
	"encoding/json"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// record is an entry during a transfer.
type record struct{ Key, Value string }

// mover transfers entries together with their keys.
func (t *table) mover() *owner.Mover { return &owner.Mover{Export: t.export, Import: t.importEntries} }

// export sends the entries of a range to its next owner. They are few, so it stops the range
// before it sends them: no entry changes during the transfer.
func (t *table) export(_ context.Context, out *owner.Export) error {
	if err := out.Stop(); err != nil {
		return err
	}
	for _, r := range t.entriesOf(out) {
		line, err := json.Marshal(r)
		if err == nil {
			err = out.Send(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entriesOf returns the entries of a range, except those of earlier leases.
func (t *table) entriesOf(out *owner.Export) (records []record) {
	t.mu.Lock() // operations that started before the stop have finished
	defer t.mu.Unlock()
	for key, e := range t.entries {
		if k := leasehold.KeyOf(key); out.Range().Contains(k) && out.Generation(k) == e.generation {
			records = append(records, record{key, e.value})
		}
	}
	return records
}

// importEntries receives entries, and returns a function that installs those of a lease.
func (t *table) importEntries(_ context.Context, in *owner.Import) (install func(leasehold.Lease), err error) {
	var imported []record
	for line, err := range in.Records() {
		var r record
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err != nil {
			return nil, err
		}
		imported = append(imported, r)
	}
	return func(l leasehold.Lease) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, r := range imported {
			if l.Range.Contains(leasehold.KeyOf(r.Key)) {
				t.entries[r.Key] = entry{r.Value, l.Generation}
			}
		}
	}, nil
}
