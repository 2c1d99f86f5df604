package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const rangesHelp = `Lists the lease table of a namespace: each range of keys and who holds it, under
which generation. Ranges are written start-limit, without the limit itself;
"end" is the end of the key space. In JSON a limit of 0000000000000000 is the
end.

A leader without a store ("manager --store flease") knows of no loss from before it
took over.`

func newRangesCommand() *cobra.Command {
	var owner string
	cmd := &cobra.Command{
		Use:   "ranges",
		Short: "List the lease table of a namespace",
		Long:  rangesHelp,
		Example: `  leasehold ranges -n presence
  leasehold ranges -n presence --owner server-1 --json`,
		Args: noArguments,
	}
	c := newClient(cmd).inNamespace(cmd, usualNamespace)
	cmd.Flags().StringVar(&owner, "owner", "", "only the ranges of the owner of this `name`")
	// The name is that of a flag just added, the only thing that can go wrong.
	_ = cmd.RegisterFlagCompletionFunc("owner", c.completeOwners)
	cmd.RunE = c.run(func(ctx context.Context, _ []string) error { return c.ranges(ctx, owner) })
	return cmd
}

func (c *client) ranges(ctx context.Context, owner string) error {
	document := rangesDocument{}
	if err := c.askWithin(ctx, func(ctx context.Context, to admin) (err error) {
		document, err = listRanges(ctx, to, c.namespace, owner)
		return err
	}); err != nil {
		return err
	}
	return c.print(document, document.text)
}

// listRanges collects the pieces of a table. A table has at most as many
// ranges as a policy may ask for, and some: more is a manager gone mad.
func listRanges(ctx context.Context, to admin, namespace, owner string) (rangesDocument, error) {
	const most = 1 << 22
	document := rangesDocument{Namespace: namespace, Ranges: []rangeDocument{}}
	stream, err := to.ListRanges(ctx, &leaseholdv1.ListRangesRequest{Version: wire.Version, Namespace: namespace, Owner: owner})
	if err != nil {
		return document, err
	}
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return document, nil
		}
		if err != nil {
			return document, err
		}
		document.LSN = piece.GetLsn()
		for _, r := range piece.GetRanges() {
			document.Ranges = append(document.Ranges, rangeJSON(r, piece.GetBegun()))
		}
		if len(document.Ranges) > most {
			return document, leasehold.Errorf("list ranges", leasehold.Limit, namespace, "more than %d ranges", most)
		}
	}
}

// A rangesDocument is what "ranges --json" prints.
type rangesDocument struct {
	Namespace string          `json:"namespace"`
	LSN       uint64          `json:"lsn"`
	Ranges    []rangeDocument `json:"ranges"`
}

// A rangeDocument is one range of the table. If nobody holds it, it has no
// owner and generation 0.
type rangeDocument struct {
	Start      string  `json:"start"`
	Limit      string  `json:"limit"` // 0000000000000000: the end of the key space
	Share      float64 `json:"share"`
	Generation string  `json:"generation"`
	Owner      string  `json:"owner"`
	Addr       string  `json:"addr"`
	LostAt     uint64  `json:"lostAt"` // the LSN at which state was last lost; 0: never
	// LostUnknown: LostAt is where the leader's table begins, for lack of a store, and
	// whether state was lost up to then nobody knows.
	LostUnknown bool `json:"lostUnknown,omitempty"`

	keys leasehold.Range
}

// rangeJSON describes a range of a table that begins at some LSN.
func rangeJSON(r *leaseholdv1.HeldRange, begun uint64) rangeDocument {
	keys := rangeOf(r.GetLease())
	return rangeDocument{
		Start: keys.Start.String(), Limit: keys.Limit.String(), Share: shareOf(keys),
		Generation: decimal(r.GetLease().GetGeneration()), Owner: r.GetOwner(), Addr: r.GetAddr(), LostAt: r.GetLost(),
		LostUnknown: r.GetLost() != 0 && r.GetLost() <= begun, keys: keys,
	}
}

func rangeOf(l *leaseholdv1.Lease) leasehold.Range {
	return leasehold.Range{Start: leasehold.Key(l.GetStart()), Limit: leasehold.Key(l.GetLimit())}
}

func keyText(key uint64) string { return leasehold.Key(key).String() }

func (d rangesDocument) text() string {
	if len(d.Ranges) == 0 {
		return "There is no such range.\n"
	}
	var rows [][]string
	for _, r := range d.Ranges {
		rows = append(rows, []string{
			r.keys.String(), percent(r.Share), orNobody(r.Owner), orDash(r.Addr), r.Generation, r.lostText(),
		})
	}
	return tableText([]column{
		left("RANGE"), number("SHARE"), left("OWNER"), left("ADDRESS"), number("GENERATION"), left("STATE LAST LOST"),
	}, rows)
}

func (r rangeDocument) lostText() string {
	switch {
	case r.LostAt == 0:
		return "never"
	case r.LostUnknown:
		return fmt.Sprintf("not known before LSN %s", grouped(r.LostAt))
	}
	return fmt.Sprintf("at LSN %s", grouped(r.LostAt))
}

func orNobody(owner string) string {
	if owner == "" {
		return bad("nobody")
	}
	return shown(owner)
}
