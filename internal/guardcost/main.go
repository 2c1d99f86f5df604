// Guardcost prints what TLS and an access policy cost, and what they are good for:
//
//	go run ./internal/guardcost
//
// Renewals: owners who renew again as soon as they are answered, at a manager that speaks
// plain text and at one that has certificates and a policy, in turns. How many renewals a
// second the manager gives is what is compared.
//
// Flood: owners who renew five times a second, while nothing else goes on and while one
// identity sends as much as it can on many streams, in turns. How long a renewal takes is
// what is compared.
//
// Managers, those who flood, and this program are processes of one computer. The flood runs at
// the lowest priority: it stands for another computer, whose processor it would use up.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// plan is what is measured.
type plan struct {
	owners int           // of each manager
	rounds int           // of each comparison
	turn   time.Duration // how long each side has in a round
	only   string        // what is compared; all if it is empty
}

// whatRenewals is the comparison that is no flood.
const whatRenewals = "renewals"

// comparisons are all that can be made.
func comparisons() []string {
	all := []string{whatRenewals}
	for _, k := range kinds {
		all = append(all, k.name)
	}
	return all
}

// wants reports whether something is to be compared.
func (p plan) wants(what string) bool { return p.only == "" || p.only == what }

func main() {
	var p plan
	flag.IntVar(&p.owners, "owners", 128, "how many `owners` each manager has")
	flag.IntVar(&p.rounds, "rounds", 15, "how many turns each side has")
	flag.DurationVar(&p.turn, "turn", time.Second, "how long a turn is")
	flag.StringVar(&p.only, "only", "", "compare `this` alone: renewals, or a kind of flood")
	flood := flag.String("flood", "", "be a flood of this `kind` until the input ends, as the identity of -identity, and flood -manager")
	manager := flag.String("manager", "", "the `address` that is flooded")
	identity := flag.String("identity", "", "the `directory` with the certificates of whoever floods")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, p, *flood, *manager, *identity)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "guardcost:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p plan, flood, manager, identity string) error {
	if flood != "" {
		return beFlood(ctx, flood, manager, identity)
	}
	if p.owners < 1 || p.owners > 9999 || p.rounds < 1 || p.turn <= 0 {
		return fmt.Errorf("want 1 to 9999 owners, a round or more and a turn that is longer than 0, and not %+v", p)
	}
	if what := comparisons(); p.only != "" && !slices.Contains(what, p.only) {
		return fmt.Errorf("there is no comparison %q, but %s", p.only, strings.Join(what, ", "))
	}
	t, err := newTown(ctx, p.owners)
	if err != nil {
		return err
	}
	defer t.close()
	if p.wants(whatRenewals) {
		if err := renewals(ctx, t, p); err != nil || p.only != "" {
			return err
		}
	}
	return floods(ctx, t, p)
}
