package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const statusHelp = `Says which manager leads, since when, where the lease tables are kept, and how
each namespace fares. Any manager can be asked. Of a namespace whose policy goes by
loads it says why nothing is balanced, if so: there is too little load to tell, or
too little is known of it yet.`

func newStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say who leads and how each namespace fares",
		Long:  statusHelp,
		Example: `  leasehold status
  leasehold status --json | jq '.namespaces[] | select(.ready | not)'`,
		Args: noArguments,
	}
	c := newClient(cmd)
	cmd.RunE = c.run(func(ctx context.Context, _ []string) error { return c.status(ctx) })
	return cmd
}

func (c *client) status(ctx context.Context) error {
	var answer *leaseholdv1.GetStatusResponse
	if err := c.ask(ctx, func(ctx context.Context, to admin) (err error) {
		answer, err = to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		return err
	}); err != nil {
		return err
	}
	document := statusJSON(answer)
	document.secured = c.security.tls()
	return c.print(document, document.text)
}

func statusJSON(answer *leaseholdv1.GetStatusResponse) statusDocument {
	document := statusDocument{
		Leader: answer.GetLeader(), Term: decimal(answer.GetTerm()), LedFor: time.Duration(answer.GetLedFor()).Seconds(),
		Manager: answer.GetManager(), Build: answer.GetBuild(), Store: answer.GetStore(),
		Problem: answer.GetProblem(), Warnings: answer.GetWarnings(), Namespaces: []namespaceStatusDocument{},
	}
	for _, n := range answer.GetNamespaces() {
		document.Namespaces = append(document.Namespaces, namespaceStatusJSON(n))
	}
	return document
}

// A statusDocument is what "status --json" prints. Without a leader the field
// is "".
type statusDocument struct {
	Leader     string                    `json:"leader"`
	Term       string                    `json:"term"`
	LedFor     float64                   `json:"ledForSeconds"` // 0 if that is not known
	Manager    string                    `json:"manager"`       // the one that was asked
	Build      string                    `json:"build"`
	Store      string                    `json:"store"`
	Problem    string                    `json:"problem,omitempty"`  // why this is not all
	Warnings   []string                  `json:"warnings,omitempty"` // what is wrong although the group serves
	Namespaces []namespaceStatusDocument `json:"namespaces"`

	secured bool // we see what our roles cover
}

// A namespaceStatusDocument is how a namespace fares.
type namespaceStatusDocument struct {
	Name             string `json:"name"`
	Ready            bool   `json:"ready"`
	Problem          string `json:"problem,omitempty"` // why it is not ready, or what is wrong all the same
	LSN              uint64 `json:"lsn"`
	NewestGeneration string `json:"newestGeneration"`
	Owners           uint32 `json:"owners"`
	Ranges           uint32 `json:"ranges"`
	Vacant           uint32 `json:"vacant"`
	Lookups          uint32 `json:"lookups"`
	Moves            uint32 `json:"moves"` // of state, under way
	// Lull is why the policy, which goes by loads, moves nothing for the sake of
	// balance; left out if it does, or never does.
	Lull string `json:"lull,omitempty"`
}

func namespaceStatusJSON(n *leaseholdv1.NamespaceStatus) namespaceStatusDocument {
	return namespaceStatusDocument{
		Name: n.GetName(), Ready: n.GetReady(), Problem: n.GetProblem(), LSN: n.GetLsn(),
		NewestGeneration: decimal(n.GetNewestGeneration()), Owners: n.GetOwners(), Ranges: n.GetRanges(),
		Vacant: n.GetVacant(), Lookups: n.GetLookups(), Moves: n.GetMoves(), Lull: n.GetLull(),
	}
}

func (d statusDocument) text() string {
	leader := bad("none") + ": leases go on until they run out, and nothing changes"
	if d.Leader != "" {
		leader = fmt.Sprintf("%s, in term %s", good(shown(d.Leader)), d.Term)
	}
	if d.Leader != "" && d.LedFor > 0 {
		leader += ", for " + seconds(d.LedFor)
	}
	text := facts([]entry{
		{"leader", leader},
		{"asked", shown(d.Manager)},
		{"build", shown(d.Build)},
		{"store", shown(d.Store)},
	}) + "\n"
	for _, w := range d.Warnings {
		text += bad("Warning: ") + shown(w) + ".\n"
	}
	if d.Problem != "" {
		text += bad("Not all is known: ") + d.Problem + ".\n"
	}
	if len(d.Namespaces) == 0 && d.Problem != "" {
		return text
	}
	if len(d.Namespaces) == 0 {
		return text + noNamespace(d.secured) + "\n"
	}
	var rows [][]string
	for _, n := range d.Namespaces {
		rows = append(rows, []string{
			shown(n.Name), grouped(uint64(n.Owners)), grouped(uint64(n.Ranges)), grouped(uint64(n.Vacant)),
			grouped(uint64(n.Moves)), grouped(uint64(n.Lookups)), grouped(n.LSN), n.NewestGeneration, n.readyText(),
		})
	}
	return text + tableText([]column{
		left("NAMESPACE"), number("OWNERS"), number("RANGES"), number("VACANT"), number("MOVES"), number("LOOKUPS"),
		number("LSN"), number("GENERATION"), left("READY"),
	}, rows) + d.lulls()
}

// lulls says where nothing is balanced, and why.
func (d statusDocument) lulls() string {
	text := ""
	for _, n := range d.Namespaces {
		if n.Lull != "" {
			text += fmt.Sprintf("%s is not balanced by load now: %s.\n", shown(n.Name), n.Lull)
		}
	}
	return text
}

func (d namespaceStatusDocument) readyText() string {
	switch {
	case d.Ready && d.Problem != "":
		return good("yes") + ", but " + bad(shown(d.Problem))
	case d.Ready:
		return good("yes")
	}
	return bad("no") + ": " + orDash(d.Problem)
}

func (d namespaceStatusDocument) rangesText() string {
	if d.Vacant == 0 {
		return grouped(uint64(d.Ranges))
	}
	return fmt.Sprintf("%s, of which nobody holds %s", grouped(uint64(d.Ranges)), grouped(uint64(d.Vacant)))
}
