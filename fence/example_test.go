package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/owner"
)

// A server writes a user's address if no later owner has written.
func ExampleSQL_Do() {
	var (
		db    *sql.DB      // the application's
		o     *owner.Owner // from owner.Join
		guard fence.SQL
	)
	setAddress := func(ctx context.Context, user, address string) error {
		lease, ok := o.Check(leasehold.KeyOf(user))
		if !ok {
			return leasehold.ErrNotOwner
		}
		err := guard.Do(ctx, db, user, lease.Generation, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE presence SET address = $1 WHERE name = $2", address, user)
			return err
		})
		if errors.Is(err, leasehold.ErrStale) {
			return leasehold.ErrNotOwner // the caller retries at the new owner
		}
		return err
	}
	_ = setAddress
}

// A transaction of the application starts with Check.
func ExampleSQL_Check() {
	var (
		db    *sql.DB
		lease owner.Lease // from Check
		guard fence.SQL
	)
	transfer := func(ctx context.Context) error {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // no effect after Commit
		if err := guard.Check(ctx, tx, "account 17", lease.Generation); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance - 1 WHERE id = 17"); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = transfer
}

func ExampleSQL_Schema() {
	schema, err := fence.SQL{Table: "app.fence"}.Schema()
	fmt.Println(schema, err)
	_, err = fence.SQL{Table: `fence"; DROP TABLE account; --`}.Schema()
	fmt.Println(leasehold.KindOf(err))
	// Output:
	// CREATE TABLE IF NOT EXISTS app.fence (
	// 	resource text COLLATE "C" PRIMARY KEY,
	// 	generation bigint NOT NULL,
	// 	seen timestamptz NOT NULL DEFAULT now()
	// ) WITH (fillfactor = 50) <nil>
	// invalid
}
