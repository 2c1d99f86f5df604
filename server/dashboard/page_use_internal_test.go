package dashboard

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/server/browsertest"
)

// ring: each place of the canvas has the colour of its owner. A click selects the range at its
// place, and the arrow keys select the next range.
func (s *shown) ring() {
	is(s, `Promise.all([import("/model.js"), import("/format.js")]).then(([{ model }, { colour, darkness }]) => {
		const canvas = document.getElementById("ring"), context = canvas.getContext("2d"), size = canvas.width;
		const paint = document.createElement("canvas").getContext("2d"), wrong = [];
		for (let i = 0; i < 200; i++) {
			const part = (i + .5) / 200, angle = 2 * Math.PI * part - Math.PI / 2;
			const key = BigInt(Math.floor(part * 2 ** 32)) << 32n, owner = model.rows[model.find(key)].owner;
			const at = radius => [...context.getImageData(Math.round(size / 2 + radius * size * Math.cos(angle)), Math.round(size / 2 + radius * size * Math.sin(angle)), 1, 1).data];
			paint.fillStyle = colour(owner, darkness.matches);
			paint.fillRect(0, 0, 1, 1);
			const want = [...paint.getImageData(0, 0, 1, 1).data];
			if (String(at(.37)) !== String(want)) wrong.push([part, at(.37), want]);
			if ((owner === 0) === (at(.42)[3] > 0)) wrong.push([part, "vacant ranges are as thick as the rest, or thicker"]);
			if ((part < .25 || part > .75) !== (at(.275)[3] > 0)) wrong.push([part, "the move is elsewhere"]);
		}
		return JSON.stringify(wrong);
	})`, "[]")
	for _, click := range []struct{ at, want string }{{"0.3, -0.3", "owner-1"}, {"0.3, 0.3", "owner-2"}, {"-0.3, -0.3", "none"}} {
		s.does(`const c = document.getElementById("ring"), b = c.getBoundingClientRect(), [x, y] = [` + click.at + `];
			c.dispatchEvent(new MouseEvent("click", { clientX: b.left + b.width * (.5 + x), clientY: b.top + b.height * (.5 + y) }))`)
		is(s, `document.querySelector("#selected dd:nth-of-type(2)").textContent`, click.want)
	}
	is(s, `document.getElementById("ring").ariaValueText`, "range 4 of 4: c000000000000000-end, 25 % of the keys, none, generation 0")
	for _, step := range []struct {
		key  string
		want string
	}{{"Home", "1"}, {"ArrowRight", "2"}, {"ArrowUp", "3"}, {"ArrowLeft", "2"}, {"ArrowDown", "1"}, {"ArrowLeft", "1"}, {"PageUp", "2"}, {"PageDown", "1"}, {"End", "4"}, {"ArrowRight", "4"}, {"Tab", "4"}} {
		s.does(fmt.Sprintf(`document.getElementById("ring").dispatchEvent(new KeyboardEvent("keydown", { key: %q, cancelable: true }))`, step.key))
		is(s, `document.getElementById("ring").ariaValueNow`, step.want)
	}
	is(s, `document.getElementById("selected").textContent.includes("vacant for")`, true)
}

// TestCrowdedRing: with more ranges than pixels, each place shows the owner with the largest share
// of it.
func TestCrowdedRing(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	w := &world{fakeAdmin: newFakeAdmin()}
	const pairs = 2048
	for i := range 2 * pairs { // the first of each pair has three quarters: owner 1 in the first half of the ring, owner 2 in the second
		const width = 1 << 53
		keys := leasehold.Range{Start: leasehold.Key(i/2) * width}
		keys.Limit = keys.Start + width/4*3
		if i%2 == 1 {
			keys = leasehold.Range{Start: keys.Limit, Limit: keys.Start + width}
		}
		w.change(table.Granted, keys, leasehold.Generation(i+1), someone(1+(i%2+i/pairs)%2), nil)
	}
	s := show(t, browsertest.Start(t), w, Config{}, "#/pool")
	s.Await("it is shown", fmt.Sprintf(`document.getElementById("ring").ariaValueMax === "%d"`, 2*pairs))
	is(s, `Promise.all([import("/model.js"), import("/format.js")]).then(([{ model }, { colour, darkness }]) => {
		const canvas = document.getElementById("ring"), size = canvas.width, paint = document.createElement("canvas").getContext("2d");
		return [.1, .2, .3, .4, .6, .7, .8, .9].map(part => {
			const angle = 2 * Math.PI * part - Math.PI / 2;
			const seen = canvas.getContext("2d").getImageData(Math.round(size / 2 + .37 * size * Math.cos(angle)), Math.round(size / 2 + .37 * size * Math.sin(angle)), 1, 1).data;
			return model.names.filter((_, i) => {
				paint.fillStyle = colour(i + 1, darkness.matches);
				paint.fillRect(0, 0, 1, 1);
				return String(paint.getImageData(0, 0, 1, 1).data) === String(seen);
			}).join();
		}).join(" ");
	})`, "owner-1 owner-1 owner-1 owner-1 owner-2 owner-2 owner-2 owner-2")
}

// tables: sorting and filtering apply to the shown text.
func (s *shown) tables() {
	sort := func(section string, column int) {
		s.does(fmt.Sprintf(`document.querySelector("#%s thead th:nth-child(%d) button").click()`, section, column+1))
	}
	filter := func(section, text string) {
		s.does(fmt.Sprintf(`const f = document.querySelector("#%s input"); f.value = %q; f.dispatchEvent(new Event("input"))`, section, text))
	}
	sort("ranges", 3)
	is(s, cells("ranges", 3), "3|2|1|-")
	is(s, `document.querySelector("#ranges thead th:nth-child(4)").ariaSort`, "descending")
	is(s, `document.activeElement.textContent`, "Generation ▾")
	sort("ranges", 3)
	is(s, cells("ranges", 3), "-|1|2|3")
	sort("ranges", 1)
	is(s, cells("ranges", 1), "none|owner-1|owner-1|owner-2")
	sort("ranges", 5)
	is(s, cells("ranges", 1)+`.split("|")[3]`, "none")
	sort("ranges", 0)
	filter("ranges", "OWNER-1")
	is(s, cells("ranges", 3), "1|3")
	filter("ranges", "c0000")
	is(s, cells("ranges", 3), "3|-")
	filter("ranges", "nowhere")
	is(s, cells("ranges", 3), "")
	is(s, `document.querySelector("#ranges > p").textContent`, "There is no such range.")
	filter("ranges", "")
	filter("owners", "owner-2")
	is(s, cells("owners", 0), "owner-2")
	filter("owners", "")
	is(s, cells("owners", 0), "owner-1|owner-2")
	is(s, `import("/table.js").then(({ Table }) => {
		let rows = Array.from({ length: 45 }, (_, i) => i);
		const root = document.createElement("div"), press = b => root.querySelectorAll("button")[b].click();
		const table = new Table(root, { caption: "c", noun: "row", columns: [{ title: "t", text: String }], rows: () => rows, key: String, empty: "e" });
		const at = () => [root.querySelector("td").textContent, root.querySelectorAll("tr").length - 1, root.querySelector(".count").textContent, ...[...root.querySelectorAll("button")].map(b => b.disabled)].join();
		const seen = [];
		table.draw(); seen.push(at()); press(1); seen.push(at()); press(1); seen.push(at()); press(0); seen.push(at());
		rows = rows.slice(0, 3); table.draw(); seen.push(at());
		return seen.join(" | ");
	})`, "0,20,1 to 20 of 45 rows,true,false | 20,20,21 to 40 of 45 rows,false,false | 40,5,41 to 45 of 45 rows,false,true | 20,20,21 to 40 of 45 rows,false,false | 0,3,3 rows,true,true")
}

// filters: only events of the selected kinds are shown, newest first.
func (s *shown) filters() {
	const words = `[...document.querySelectorAll("#events li b")].map(b => b.textContent).join()`
	is(s, words, "leader,lost,granted,granted,granted,granted")
	for _, kind := range []string{"grants", "leaders"} {
		s.does(fmt.Sprintf(`[...document.querySelectorAll("#filters label")].find(l => l.textContent === %q).querySelector("input").click()`, kind))
	}
	is(s, words, "lost")
	s.does(`const f = document.querySelector("#filters input[type=search]"); f.value = "OWNER-9"; f.dispatchEvent(new Event("input"))`)
	is(s, `document.getElementById("events").textContent`, "Nothing that is wanted.")
	s.does(`const f = document.querySelector("#filters input[type=search]"); f.value = "owner-2"; f.dispatchEvent(new Event("input"))`)
	for _, kind := range []string{"grants", "leaders"} {
		s.does(fmt.Sprintf(`[...document.querySelectorAll("#filters label")].find(l => l.textContent === %q).querySelector("input").click()`, kind))
	}
	is(s, words, "granted")
	s.does(`const f = document.querySelector("#filters input[type=search]"); f.value = ""; f.dispatchEvent(new Event("input"))`)
	is(s, words, "leader,lost,granted,granted,granted,granted")
}

// keepsFocus: while the table changes, the focus and the scroll position stay.
func (s *shown) keepsFocus() {
	s.does(`import("/main.js"); document.querySelector("#ranges tbody tr:nth-child(3) button").focus(); window.focused = document.activeElement`)
	s.does(`document.querySelector("#events").style.maxHeight = "3rem"; document.querySelector("#events").scrollTop = 40; window.line = document.querySelector("#events .vacated")`)
	s.does(`window.from = window.line.getBoundingClientRect().top - document.querySelector("#events").getBoundingClientRect().top`)
	rows := browsertest.Evaluate[int](s.Window, `document.querySelectorAll("#ranges tbody tr").length`)
	for i := range 3 {
		s.step(leasehold.Key(i+1)<<58, true, 2, true) // each splits the first quarter
	}
	s.Await("the changes are shown", fmt.Sprintf(`document.querySelectorAll("#ranges tbody tr").length === %d`, rows+3))
	is(s, `document.activeElement === window.focused && window.focused.isConnected`, true)
	is(s, `window.focused.textContent`, "8000000000000000-c000000000000000")
	s.does(`window.focused.click()`) // the third range is now the sixth
	is(s, `document.querySelector("#selected dd").textContent`, "8000000000000000-c000000000000000")
	is(s, `window.line.isConnected`, true)
	is(s, `Math.abs(window.line.getBoundingClientRect().top - document.querySelector("#events").getBoundingClientRect().top - window.from) < 2`, true)
	s.does(`document.querySelector("#selected button").focus(); window.focused = document.activeElement`)
	s.step(1<<57, true, 2, true)
	s.Await("the change is shown", fmt.Sprintf(`document.querySelectorAll("#ranges tbody tr").length === %d`, rows+4))
	is(s, `document.activeElement === window.focused && window.focused.isConnected`, true)
	s.does(`window.focused.click()`)
	s.showsText("#explanation", "8000000000000000-c000000000000000")
	is(s, `document.querySelector("#selected .quiet").textContent`, "range 7 of 8 ranges")
	for i := range 2 { // each viewer receives only a snapshot
		s.hangUp()
		s.step(leasehold.Key(i+1)<<55, true, 1, true)
		rows++
		s.Await("the new table is shown", fmt.Sprintf(`document.querySelectorAll("#ranges tbody tr").length === %d && document.querySelector("#selected .quiet").textContent.endsWith("of %d ranges")`, rows+4, rows+4))
	}
	is(s, `Promise.all([import("/model.js"), import("/format.js")]).then(([{ model }, { colour }]) => model.nameOf(1))`, "owner-1")
}
