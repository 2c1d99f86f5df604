// Command ledger runs the simulators on seeds that no earlier run has used, and adds up the results per commit. Run it
// in the root of the repository, with everything committed:
//
//	go run ./lab/ledger -for 8h                  # make verify-night
//	go run ./lab/ledger -for 10m -only outage    # only this kind
//	go run ./lab/ledger -page                    # only write the page
//
// It continues where the last run stopped. The results are in lab/ledger/ledger.json, and docs/LEDGER.md is generated
// from them. After a violation it writes both, prints the command that replays it, and exits with status 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
)

// Paths relative to the root of the repository.
const (
	ledgerFile = "lab/ledger/ledger.json"
	pageFile   = "docs/LEDGER.md"
)

func main() {
	limit := flag.Duration("for", 8*time.Hour, "start no block of seeds after this time")
	only := flag.String("only", "", "run only this `kind`: "+strings.Join(kindNames(), ", "))
	page := flag.Bool("page", false, "only write the page")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *limit, *only, *page)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, limit time.Duration, only string, pageOnly bool) error {
	ledger, err := read(ledgerFile)
	if err != nil {
		return err
	}
	if pageOnly {
		return ledger.write()
	}
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	commit, err := cleanCommit(ctx)
	if err != nil {
		return err
	}
	programs, err := build(ctx)
	if err != nil {
		return err
	}
	defer programs.remove()
	for end := time.Now().Add(limit); ctx.Err() == nil && time.Now().Before(end); {
		k := ledger.next(commit, chosen)
		first := ledger.nextSeed(k.name)
		result, err := k.run(ctx, programs, first)
		if ctx.Err() != nil {
			return nil // the block is run again next time
		}
		if err != nil {
			return fmt.Errorf("%s from seed %d on: %w", k.name, first, err)
		}
		ledger.add(commit, k.name, first, result)
		if err := ledger.write(); err != nil {
			return err
		}
		fmt.Printf("%s %d-%d: %d violations\n", k.name, first, first+result.Seeds-1, result.Violations)
		if result.Violations > 0 {
			return errors.New("violation. Replay it with: " + k.command(first, result.Seeds))
		}
	}
	return nil
}

// cleanCommit returns the current commit. Changes of other files than the ledger's are refused: the results would be of
// no commit.
func cleanCommit(ctx context.Context) (string, error) {
	changed, err := git(ctx, "status", "--porcelain", "--", ".", ":!"+ledgerFile, ":!"+pageFile)
	if err != nil {
		return "", err
	}
	if changed != "" {
		return "", fmt.Errorf("there are uncommitted changes: commit them first, so that the results belong to a commit:\n%s", changed)
	}
	// The commits of the ledger itself change no code.
	return git(ctx, "log", "-1", "--format=%h", "--", ".", ":!"+ledgerFile, ":!"+pageFile)
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
