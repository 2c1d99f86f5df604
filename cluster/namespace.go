package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/admin"
)

// createNamespace creates the namespace unless it exists. All voters do so at the same time; the leader
// creates it once. Without a leader it is repeated.
func (c *Cluster) createNamespace(ctx context.Context) error {
	if c.cfg.Access != nil && c.cfg.Identity == "" {
		return nil // an operator creates it
	}
	if c.cfg.Access != nil {
		ctx = access.WithCaller(ctx, access.Known(c.cfg.Identity))
	}
	client := admin.NewLocal(c.manager.Admin())
	defer client.Close() //nolint:errcheck // it has no connection
	wanted := c.cfg.Settings
	wanted.Name = string(c.cfg.Namespace)
	return c.cfg.await(ctx, "the creation of the namespace", statePoll, func() (string, error) {
		_, err := client.CreateNamespace(ctx, wanted)
		if errors.Is(err, leasehold.ErrExists) {
			var existing admin.Namespace
			if existing, err = client.Namespace(ctx, wanted.Name); err == nil {
				c.compare(wanted, existing)
			}
		}
		switch {
		case err == nil:
			return "", nil
		case admin.Retriable(err), errors.Is(err, leasehold.ErrIndeterminate), errors.Is(err, leasehold.ErrNotFound):
			return err.Error(), nil
		}
		return "", err
	})
}

// compare logs the settings of the namespace that differ from the configured ones. It does not change
// them: during a rolling update, members with the old and the new configuration would overwrite each
// other, and an operator may have changed the settings on purpose.
func (c *Cluster) compare(wanted, existing admin.Namespace) {
	if differ := differences(wanted, existing); len(differ) > 0 {
		c.cfg.Logger.Warn("the namespace keeps its settings, which differ from those of this server: change them with leasehold namespace update, or correct Settings",
			"namespace", existing.Name, "different", differ)
	}
}

// differences describes the fields that are set in wanted and different in existing.
func differences(wanted, existing admin.Namespace) (out []string) {
	w, e := reflect.ValueOf(wanted), reflect.ValueOf(existing)
	for i := range w.NumField() {
		if !w.Field(i).IsZero() && !reflect.DeepEqual(w.Field(i).Interface(), e.Field(i).Interface()) {
			out = append(out, fmt.Sprintf("%s is %v, and %v in Settings", w.Type().Field(i).Name, e.Field(i), w.Field(i)))
		}
	}
	return out
}
