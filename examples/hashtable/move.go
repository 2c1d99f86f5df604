package main

import (
	"context"
	"encoding/json"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// record is an entry on its way to another server.
type record struct{ Key, Value string }

// mover has entries go with their keys when those go to another server.
func (t *table) mover() *owner.Mover { return &owner.Mover{Export: t.export, Import: t.take} }

// export sends the entries of a range to its next server. They are few, so that
// the range may stop before they are sent: nothing changes on the way.
func (t *table) export(_ context.Context, out *owner.Export) error {
	if err := out.Stop(); err != nil {
		return err
	}
	for _, r := range t.within(out) {
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

// within returns the entries of a range, but for those of an earlier tenure.
func (t *table) within(out *owner.Export) (records []record) {
	t.mu.Lock() // what has begun before the stop has its place in the table when we get it
	defer t.mu.Unlock()
	for key, e := range t.entries {
		if k := leasehold.KeyOf(key); out.Range().Contains(k) && out.Generation(k) == e.generation {
			records = append(records, record{key, e.value})
		}
	}
	return records
}

// take sets entries aside, and puts them in their place when their keys are ours.
func (t *table) take(_ context.Context, in *owner.Import) (install func(leasehold.Lease), err error) {
	var aside []record
	for line, err := range in.Records() {
		var r record
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err != nil {
			return nil, err
		}
		aside = append(aside, r)
	}
	return func(l leasehold.Lease) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, r := range aside {
			if l.Range.Contains(leasehold.KeyOf(r.Key)) {
				t.entries[r.Key] = entry{r.Value, l.Generation}
			}
		}
	}, nil
}
