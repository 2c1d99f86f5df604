package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const movesHelp = `Lists the state that is on its way from one owner to another, and what waits for
its turn. The states are:

  begun    the source has been told, and has not spoken of it yet
  copying  the source serves the range, and copies
  stopped  the source has stopped serving the range, and sends the rest
  waiting  its source or its target has enough to do

A move from an owner to itself makes one lease of several that lie side by side.`

func newMovesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "moves",
		Short:   "List the state that is on its way to another owner",
		Long:    movesHelp,
		Example: "  leasehold moves -n presence",
		Args:    noArguments,
	}
	c := newClient(cmd).inNamespace(cmd, usualNamespace)
	cmd.RunE = c.run(func(ctx context.Context, _ []string) error { return c.moves(ctx) })
	return cmd
}

func (c *client) moves(ctx context.Context) error {
	var answer *leaseholdv1.ListMovesResponse
	if err := c.askWithin(ctx, func(ctx context.Context, to admin) (err error) {
		answer, err = to.ListMoves(ctx, &leaseholdv1.ListMovesRequest{Version: wire.Version, Namespace: c.namespace})
		return err
	}); err != nil {
		return err
	}
	d := movesJSON(c.namespace, answer)
	return c.print(d, d.text)
}

// A movesDocument is what "moves --json" prints.
type movesDocument struct {
	Namespace string               `json:"namespace"`
	UnderWay  uint32               `json:"underWay"`
	Waiting   uint32               `json:"waiting"`
	Moves     []moveStatusDocument `json:"moves"` // at most 4,096
}

func movesJSON(namespace string, answer *leaseholdv1.ListMovesResponse) movesDocument {
	d := movesDocument{Namespace: namespace, UnderWay: answer.GetUnderWay(), Waiting: answer.GetWaiting(), Moves: []moveStatusDocument{}}
	for _, m := range answer.GetMoves() {
		d.Moves = append(d.Moves, moveStatusJSON(m))
	}
	return d
}

// A moveStatusDocument is one move. While it waits it has no id.
type moveStatusDocument struct {
	ID       string  `json:"id,omitempty"`
	Start    string  `json:"start"`
	Limit    string  `json:"limit"` // 0000000000000000: the end of the key space
	Share    float64 `json:"share"`
	From     string  `json:"from"`
	To       string  `json:"to"`
	State    string  `json:"state"` // begun, copying, stopped or waiting
	Records  uint64  `json:"records"`
	Bytes    uint64  `json:"bytes"`
	Age      float64 `json:"ageSeconds"`
	Patience float64 `json:"patienceSeconds"` // without progress it fails after so long

	keys leasehold.Range
}

func moveStatusJSON(m *leaseholdv1.MoveStatus) moveStatusDocument {
	keys := leasehold.Range{Start: leasehold.Key(m.GetStart()), Limit: leasehold.Key(m.GetLimit())}
	d := moveStatusDocument{
		ID: m.GetId(), Start: keys.Start.String(), Limit: keys.Limit.String(), Share: shareOf(keys),
		From: m.GetFrom(), To: m.GetTo(), State: enumText(m.GetState(), "MOVE_STATE_"),
		Records: m.GetRecords(), Bytes: m.GetBytes(),
		Age: time.Duration(m.GetAge()).Seconds(), Patience: time.Duration(m.GetPatience()).Seconds(), keys: keys,
	}
	switch {
	case m.GetId() == "":
		d.State = "waiting"
	case m.GetState() == leaseholdv1.MoveState_MOVE_STATE_UNSPECIFIED:
		d.State = "begun"
	}
	return d
}

func (d movesDocument) text() string {
	if len(d.Moves) == 0 {
		return "Nothing is on its way.\n"
	}
	var rows [][]string
	for _, m := range d.Moves {
		row := []string{m.keys.String(), percent(m.Share), shown(m.From), orNobody(m.To), m.State, "-", "-", "-"}
		if m.ID != "" {
			copy(row[5:], []string{grouped(m.Records), byteText(m.Bytes), seconds(m.Age)})
		}
		rows = append(rows, row)
	}
	return tableText([]column{
		left("RANGE"), number("SHARE"), left("FROM"), left("TO"), left("STATE"), number("RECORDS"), number("SENT"), number("AGE"),
	}, rows) + fmt.Sprintf("%s under way, %s waiting\n", counted(int(d.UnderWay), "move"), grouped(uint64(d.Waiting)))
}
