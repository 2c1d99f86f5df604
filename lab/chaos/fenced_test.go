package chaos

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testkit/realservice"
	"github.com/leasehold-dev/leasehold/lab/chaos/actor"
	"github.com/leasehold-dev/leasehold/lab/chaos/check"
	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// An owner of a test can also write to a PostgreSQL, with a fence. Its program is then this test binary, so
// that the leasehold command needs no database driver.

// runFencedOwner is the main function of such an owner.
func runFencedOwner(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go proc.EndWithParent(os.Stdin)
	cfg := actor.OwnerConfig{Records: os.Stdout, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flags := pflag.NewFlagSet("owner", pflag.ContinueOnError)
	cfg.AddFlags(flags)
	dsn := flags.String("postgres", "", "database to write to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	db, err := sql.Open("pgx", *dsn)
	if err != nil {
		return err
	}
	cfg.Beside = func(ctx context.Context, l owner.Checker) error { return writeFenced(ctx, db, l) }
	return errors.Join(actor.RunOwner(ctx, cfg), db.Close())
}

// How owners write to the database.
const (
	fencedEvery = 20 * time.Millisecond
	dawdling    = 8 // one in this number of writes is made long after the check
	dawdle      = 10 * time.Second
	atOnce      = 64 // concurrent writes, most of which are late
)

// writeFenced writes under leases that it has checked before, sometimes so long before that another owner has
// the key. It never checks again whether the lease is held: it tests the fence.
func writeFenced(ctx context.Context, db *sql.DB, l owner.Checker) error {
	db.SetMaxOpenConns(2)
	names, room := history.Watched(cluster.Registers), make(chan struct{}, atOnce)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(fencedEvery):
		}
		name := names[rand.IntN(len(names))]
		lease, ok := l.Check(leasehold.KeyOf(name))
		if !ok {
			continue
		}
		var late time.Duration
		if rand.IntN(dawdling) == 0 {
			late = rand.N(dawdle)
		}
		select {
		case room <- struct{}{}:
		default:
			continue
		}
		go func() {
			defer func() { <-room }()
			select {
			case <-ctx.Done():
				return
			case <-time.After(late):
			}
			writeOnce(ctx, db, name, lease.Generation)
		}()
	}
}

// writeOnce makes one write. The database records the result in the order of acceptance: the number of a row
// is assigned while the fence is locked.
func writeOnce(ctx context.Context, db *sql.DB, name string, g leasehold.Generation) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := fence.SQL{}.Do(ctx, db, name, g, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO accepted (resource, generation) VALUES ($1, $2)", name, int64(g))
		return err
	})
	if errors.Is(err, leasehold.ErrStale) {
		_, _ = db.ExecContext(ctx, "INSERT INTO refused (resource, generation) VALUES ($1, $2)", name, int64(g)) // for counting
	}
}

// fenced makes the owners of a run write to a PostgreSQL. Without a PostgreSQL it does nothing.
func fenced(t *testing.T, cfg *Config) bool {
	t.Helper()
	var server *realservice.PostgreSQL
	t.Run("postgres", func(sub *testing.T) { server = realservice.StartPostgreSQL(within{sub, t}) })
	if server == nil {
		return false
	}
	db, err := sql.Open("pgx", server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	schema, err := fence.SQL{}.Schema()
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		schema,
		"CREATE TABLE accepted (number bigserial PRIMARY KEY, resource text NOT NULL, generation bigint NOT NULL)",
		"CREATE TABLE refused (resource text NOT NULL, generation bigint NOT NULL)",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg.OwnerProgram, cfg.OwnerArgs = self, []string{"--postgres", server.DSN}
	cfg.Conclude = func(ctx context.Context, b *check.Book) error { return readFenced(ctx, db, b) }
	return true
}

// within is a test whose cleanups run at the end of another test.
type within struct {
	*testing.T
	whole *testing.T
}

func (w within) Cleanup(do func()) { w.whole.Cleanup(do) }

// readFenced adds the writes in the database to the book.
func readFenced(ctx context.Context, db *sql.DB, b *check.Book) error {
	rows, err := db.QueryContext(ctx, "SELECT resource, generation FROM accepted ORDER BY number")
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err has the errors
	for rows.Next() {
		var name string
		var g int64
		if err := rows.Scan(&name, &g); err != nil {
			return err
		}
		b.Accepted(name, leasehold.Generation(g))
	}
	var refused int
	if err := errors.Join(rows.Err(), db.QueryRowContext(ctx, "SELECT count(*) FROM refused").Scan(&refused)); err != nil {
		return err
	}
	b.Refused(refused)
	return nil
}
