package etcd_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// childDir is the environment variable of a child process: a copy of this test binary that embeds
// a member on the directory and appends until it is killed.
const childDir = "LEASEHOLD_TEST_CHILD_DIR"

func child(dir string) int {
	ctx := context.Background()
	m, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	r, err := m.Record(ctx, true)
	if err == nil {
		_, _, err = m.Swap(ctx, r.Version, storage.Record{Term: r.Term + 1, Leader: "child"})
	}
	end, err2 := m.End(ctx, "crash")
	if err != nil || err2 != nil {
		fmt.Println("error", err, err2)
		return 1
	}
	for lsn := end.LSN; ; lsn += 2 {
		b := &storage.Batch{Namespace: "crash", Term: r.Term + 1, Prev: lsn, Changes: grantAndVacate(lsn)}
		if outcome, err := m.Append(ctx, b); outcome != storage.Done {
			fmt.Println("error", outcome, err)
			return 1
		}
		fmt.Println("done", b.Last())
	}
}

// grantAndVacate returns two changes that leave a table unchanged.
func grantAndVacate(after leasehold.LSN) []table.Change {
	h := &table.Holder{Owner: "ann", Session: leasehold.Session{1}, Addr: "a", Weight: 1}
	g := leasehold.Generation(after/2 + 1)
	return []table.Change{
		{LSN: after + 1, Kind: table.Granted, Generation: g, Holder: h},
		{LSN: after + 2, Kind: table.Vacated, Generation: g, Holder: h, Cause: leasehold.CauseExpired},
	}
}

// TestKill: a commit before the process is killed is present after the restart.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	last := leasehold.LSN(0)
	for range 2 {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 20 && lines.Scan(); n++ {
			if _, err := fmt.Sscanf(lines.Text(), "done %d", &last); err != nil {
				t.Errorf("unexpected output of the child: %q", lines.Text())
			}
		}
		if _, err := tryEmbed(t, etcd.EmbedConfig{Dir: dir}); leasehold.KindOf(err) != leasehold.ErrExists {
			t.Errorf("the directory can be opened while the child runs: %v", err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // its output before the kill
			if text, whole := strings.CutPrefix(lines.Text(), "done "); whole && text != "" {
				var lsn leasehold.LSN
				if _, err := fmt.Sscan(text, &lsn); err == nil && lsn == last+2 {
					last = lsn
				}
			}
		}
		_ = cmd.Wait() // it was killed
	}
	m := embed(t, etcd.EmbedConfig{Dir: dir})
	state, err := m.Load(t.Context(), "crash")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Replay(); err != nil || state.End() < last {
		t.Errorf("the log ends at %d (%v), and %d was committed", state.End(), err, last)
	}
}
