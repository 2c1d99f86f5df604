package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const historyHelp = `Says who held a key, since when, and why that ended, newest first, as far back as
the store remembers; without a store, as far back as the present leader leads. Times are those of the wall clocks of the managers.

With --since it says who held it since then: the last line is the change that was in force at that time, if one is remembered.

` + keyHelp

func newHistoryCommand() *cobra.Command {
	var (
		most  uint32
		since string
	)
	cmd := &cobra.Command{
		Use:   "history KEY",
		Short: "Say who held a key, and why that ended",
		Long:  historyHelp,
		Example: `  leasehold history alice -n presence
  leasehold history alice -n presence --since 36h
  leasehold history alice -n presence --most 1000 --json`,
		Args: oneArgument("a key"),
	}
	c := newClient(cmd).inNamespace(cmd, usualNamespace)
	k := addKeyFlag(cmd)
	cmd.Flags().Uint32Var(&most, "most", 100, "at most so many changes")
	cmd.Flags().StringVar(&since, "since", "", sinceHelp)
	cmd.RunE = c.run(func(ctx context.Context, args []string) error {
		key, err := k.parse(args[0])
		if err != nil {
			return err
		}
		from, err := parseSince(since, time.Now())
		if err != nil {
			return err
		}
		return c.history(ctx, key, most, from)
	})
	return cmd
}

func (c *client) history(ctx context.Context, key *keyArgument, most uint32, since time.Time) error {
	var answer *leaseholdv1.ListHistoryResponse
	if err := c.askWithin(ctx, func(ctx context.Context, to admin) (err error) {
		answer, err = to.ListHistory(ctx, &leaseholdv1.ListHistoryRequest{
			Version: wire.Version, Namespace: c.namespace, Key: uint64(key.key), Most: most,
		})
		return err
	}); err != nil {
		return err
	}
	document := historyDocument{
		Namespace: c.namespace, Key: key.key.String(), Name: key.name,
		Truncated: answer.GetTruncated(), More: answer.GetMore(), Diskless: answer.GetBegun() > 0, Entries: []changeDocument{},
	}
	for _, e := range answer.GetEntries() {
		document.Entries = append(document.Entries, changeJSON(e))
	}
	if before := answer.GetBefore(); before != nil {
		document.Before = beforeJSON(before)
	}
	document.from(since)
	return c.print(document, func() string { return document.text(key) })
}

// A historyDocument is what "history --json" prints, newest first.
type historyDocument struct {
	Namespace string `json:"namespace"`
	Key       string `json:"key"`
	Name      string `json:"name,omitempty"`
	Truncated bool   `json:"truncated"` // what was before is forgotten
	More      bool   `json:"more"`      // there is more than was asked for
	// Diskless: it is forgotten because the managers keep nothing on disk.
	Diskless bool             `json:"diskless,omitempty"`
	Entries  []changeDocument `json:"entries"`
	Before   *beforeDocument  `json:"before,omitempty"` // if there are no entries
}

// from leaves off what was before a time, but for the change that was in force then.
func (d *historyDocument) from(since time.Time) {
	for i, e := range d.Entries {
		if e.at.Before(since) {
			d.Entries, d.More, d.Truncated, d.Diskless = d.Entries[:i+1], false, false, false
			return
		}
	}
}

// A beforeDocument is who has held the key since before all that is remembered.
type beforeDocument struct {
	Start      string `json:"start"`
	Limit      string `json:"limit"` // 0000000000000000: the end of the key space
	Generation string `json:"generation"`
	Owner      string `json:"owner"`
	Addr       string `json:"addr"`

	keys leasehold.Range
}

func beforeJSON(r *leaseholdv1.HeldRange) *beforeDocument {
	keys := rangeOf(r.GetLease())
	return &beforeDocument{
		Start: keys.Start.String(), Limit: keys.Limit.String(), Generation: decimal(r.GetLease().GetGeneration()),
		Owner: r.GetOwner(), Addr: r.GetAddr(), keys: keys,
	}
}

// A changeDocument is one change of the lease table.
type changeDocument struct {
	LSN        uint64 `json:"lsn"`
	At         string `json:"at,omitempty"` // RFC 3339
	Kind       string `json:"kind"`         // granted, vacated or moved
	Start      string `json:"start"`
	Limit      string `json:"limit"` // 0000000000000000: the end of the key space
	Generation string `json:"generation"`
	Owner      string `json:"owner"`
	Session    string `json:"session"`
	Addr       string `json:"addr"`
	Cause      string `json:"cause,omitempty"` // of a change that vacates
	From       string `json:"from,omitempty"`  // of a change that moves: who had it
	// Reason is why somebody was given the range: joined, gone, load, leaving, drain, order,
	// rebalance, configured or joint. Missing if it is not known.
	Reason string `json:"reason,omitempty"`

	at   time.Time
	keys leasehold.Range
}

func changeJSON(e *leaseholdv1.HistoryEntry) changeDocument {
	keys, h := rangeOf(e.GetLease()), e.GetHolder()
	d := changeDocument{
		LSN: e.GetLsn(), Kind: enumText(e.GetKind(), "CHANGE_KIND_"),
		Start: keys.Start.String(), Limit: keys.Limit.String(), Generation: decimal(e.GetLease().GetGeneration()),
		Owner: h.GetOwner(), Session: hex.EncodeToString(h.GetSession()), Addr: h.GetAddr(), From: e.GetFrom().GetOwner(), keys: keys,
	}
	if e.GetAt() != nil {
		d.at = e.GetAt().AsTime()
		d.At = d.at.Format(time.RFC3339Nano)
	}
	if e.GetCause() != leaseholdv1.Cause_CAUSE_UNSPECIFIED {
		d.Cause = enumText(e.GetCause(), "CAUSE_")
	}
	if e.GetReason() != leaseholdv1.Reason_REASON_UNSPECIFIED {
		d.Reason = enumText(e.GetReason(), "REASON_")
	}
	return d
}

func (d historyDocument) text(key *keyArgument) string {
	text := facts([]entry{{"key", key.text()}, {"namespace", shown(d.Namespace)}}) + "\n"
	if len(d.Entries) == 0 && d.Before == nil {
		return text + "Nobody has held it, as far as the store remembers.\n"
	}
	var rows [][]string
	if b := d.Before; b != nil {
		rows = append(rows, []string{"-", "-", "held all along", orDash(b.Owner), orDash(b.Addr), b.Generation, b.keys.String()})
	}
	for _, e := range d.Entries {
		rows = append(rows, []string{
			timeText(e.at), grouped(e.LSN), e.what(), orDash(e.Owner), orDash(e.Addr), e.Generation, e.keys.String(),
		})
	}
	text += tableText([]column{
		left("TIME"), number("LSN"), left("CHANGE"), left("OWNER"), left("ADDRESS"), number("GENERATION"), left("RANGE"),
	}, rows)
	if d.More {
		text += "There is more: ask for it with --most.\n"
	}
	switch {
	case d.Diskless:
		text += "These managers keep nothing on disk: what was before the present leader led is forgotten.\n"
	case d.Truncated:
		text += "What was before that is forgotten.\n"
	}
	return text
}

// what says what a change did, and why.
func (d changeDocument) what() string {
	switch {
	case d.Cause != "":
		return fmt.Sprintf("%s: %s", bad(d.Kind), d.Cause)
	case d.Kind == "granted":
		return good(d.Kind) + d.why()
	case d.Kind == "moved" && d.From == d.Owner:
		return good(d.Kind) + " into one lease"
	case d.Kind == "moved":
		return good(d.Kind) + " from " + orDash(d.From) + d.why()
	}
	return d.Kind
}

// why says why somebody was given a range, in a few words; nothing if that is not known.
func (d changeDocument) why() string {
	words := d.Reason
	switch d.Reason {
	case "":
		return ""
	case "joined", "gone":
		words = "owners " + words
	case "leaving":
		words = "an owner leaves"
	case "order":
		words = "ordered"
	case "configured":
		words = "configured anew"
	}
	return " (" + words + ")"
}

// ownerText names whose change it is; of a move, whom the range has gone to.
func (d changeDocument) ownerText() string {
	if d.Kind == "moved" && d.From != d.Owner {
		return "to " + orDash(d.Owner)
	}
	return orDash(d.Owner)
}

// timeText writes a time in the reader's own time zone.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}
