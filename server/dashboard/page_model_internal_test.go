package dashboard

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/browsertest"
)

// TestModelInBrowser: the page builds exactly the manager's table from the frames.
func TestModelInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	page := show(t, browsertest.Start(t), &world{fakeAdmin: newFakeAdmin()}, Config{}, "#/pool")
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := &world{fakeAdmin: newFakeAdmin()}
		h := quietHub(w)
		for range random.IntN(20) {
			w.randomStep(random)
		}
		if err := h.begin(t.Context(), admin.EventOf(leads())); err != nil {
			t.Fatal(err)
		}
		v := h.join("")
		var frames []string
		for range 40 {
			if random.IntN(20) == 0 {
				if err := h.begin(t.Context(), admin.EventOf(leads())); err != nil { // a snapshot replaces the table
					t.Fatal(err)
				}
			}
			if err := h.report([]admin.Event{w.randomStep(random), w.randomStep(random)}); err != nil {
				t.Fatal(err)
			}
			for _, f := range h.take(v) {
				_, data, _ := strings.Cut(string(f.plain()), "data: ")
				frames = append(frames, fmt.Sprintf("[%q, %s]", f.event, data))
			}
		}
		got := browsertest.Evaluate[string](page.Window, `import("/model.js").then(({ Model }) => {
			const model = new Model(), versions = new Set();
			let last;
			for (const [kind, data] of [`+strings.Join(frames, ",")+`]) {
				if (model[kind](data) === false) return "a frame does not fit";
				if (versions.has(model.version)) return "the table is another, and its version is the same";
				versions.add(model.version);
				last = kind === "news" ? data : null;
			}
			if (last && !model.news(last) || versions.size !== new Set([...versions, model.version]).size) return "what it has is taken up again";
			if (model.news({ lsn: String(model.lsn + 5n), events: [] })) return "it lacks something, and goes on";
			if (model.events.length > 500) return "all events are remembered";
			const find = model.rows.every((r, i) => model.find(r.start) === i && model.find((i + 1 < model.rows.length ? model.rows[i + 1].start : 2n ** 64n) - 1n) === i);
			const whole = model.rows.reduce((sum, _, i) => sum + model.share(i), 0);
			return JSON.stringify([String(model.lsn), find, Math.abs(whole - 1) < 1e-9, model.rows.map((r, i) => [r.start.toString(16).padStart(16, "0"), model.interval(i).limit,
				model.nameOf(r.owner), String(r.generation), String(r.lost), Boolean(r.since) === Boolean(r.owner || r.lost), Boolean(r.lostAt) === Boolean(r.lost)])]);
		})`)
		if want := w.asRows(); got != want {
			t.Fatalf("seed %d: the page has\n%s\nwant\n%s", seed, got, want)
		}
	}
}

// randomStep makes a random change.
func (w *world) randomStep(random *rand.Rand) admin.Event {
	return w.step(leasehold.Key(random.Uint64()), random.IntN(2) == 0, 1+random.IntN(4), random.IntN(2) == 0)
}

// asRows returns the table in the format of TestModelInBrowser.
func (w *world) asRows() string {
	rows := [][]any{}
	for r, e := range w.table.All() {
		owner := ""
		if !e.Vacant() {
			owner = string(e.Holder.Owner)
		}
		rows = append(rows, []any{admin.Point(r.Start), admin.Limit(r.Limit), owner, fmt.Sprint(e.Generation), fmt.Sprint(e.Lost), true, true})
	}
	text, err := json.Marshal([]any{fmt.Sprint(w.table.LSN()), true, true, rows})
	if err != nil {
		panic(err)
	}
	return string(text)
}
