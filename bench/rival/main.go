package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

// module is the rival's.
const module = "github.com/cadence-workflow/shard-manager"

const whatItAsks = "How does `" + module + "` do, as a server with etcd, when owners join, when one crashes, and when lookups\n" +
	"are to hear of it? For that the module must come from the Go proxy that this computer uses, with the checksums that Go verifies: numbers of\n" +
	"a server that was put together in another way would be numbers of something else. The table has what was asked, and the answer."

func main() {
	kit.Main(kit.Question{Name: "rival", Number: 9, Title: "Rival", Asks: whatItAsks, Rounds: 1, Quick: 1, Run: run})
}

// limit is how long the Go command may take to find out.
const limit = time.Minute

func run(ctx context.Context, r *kit.Run) error {
	dir, err := os.MkdirTemp("", "bench-rival-") // outside of any module
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	questions := [][]string{{"list", "-m", "-versions", module}, {"mod", "download", module + "@latest"}}
	r.Expect(len(questions))
	t := kit.NewTable("", "asked", "answer")
	var refused error
	for _, args := range questions {
		answer, err := askGo(ctx, dir, args)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			answer, refused = err.Error(), err
		}
		t.Add("`go "+strings.Join(args, " ")+"`", answer)
		r.Step("asked the Go proxy: %s", args[0])
	}
	r.Add(kit.Section{Title: "Can it be had?", Table: t})
	if refused != nil {
		r.Skip(module, fmt.Errorf("its source cannot be had from the Go proxy here, so it was neither built nor run: %w", refused))
		return nil
	}
	r.Skip(module, errors.New("it can be had from the Go proxy now, and the contest with it is still to be written"))
	return nil
}

// askGo runs the Go command, and returns what it says in one line.
func askGo(ctx context.Context, dir string, args []string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer in %v", limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", errors.New(plain(errs.String()))
	}
	if text := plain(out.String()); text != "" {
		return text, nil
	}
	return "done", nil
}

var address = regexp.MustCompile(`reading https?://\S+: `)

// plain makes one line of what Go says, and leaves out where it asked, which differs
// from computer to computer.
func plain(text string) string {
	return strings.Join(strings.Fields(address.ReplaceAllString(text, "")), " ")
}
