package dashboard

import (
	"fmt"

	"github.com/chromedp/chromedp"
)

// readable: both themes have enough contrast, also when the page is stale, and every control has
// an accessible name.
func (s *shown) readable() {
	for _, stale := range []bool{false, true} {
		for _, scheme := range []string{"light", "dark"} {
			dark(s.Window, scheme)
			s.does(fmt.Sprintf(`document.body.toggleAttribute("data-stale", %v)`, stale))
			is(s, `(() => {
				const parse = c => c.match(/^rgba?\(/) ? c.match(/[\d.]+/g).map(Number) : null;
				const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
				const under = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c && (c[3] ?? 1) === 1) return c; } return [255, 255, 255]; };
				const bad = new Set();
				for (const e of document.querySelectorAll("body *")) {
					if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || e.getClientRects().length === 0 || e.disabled) continue;
					let opacity = 1;
					for (let p = e; p; p = p.parentElement) opacity *= getComputedStyle(p).opacity;
					const ink = parse(getComputedStyle(e).color), paper = under(e);
					if (!ink) continue;
					const mixed = ink.slice(0, 3).map((v, i) => v * opacity + paper[i] * (1 - opacity));
					const [a, b] = [light(mixed), light(paper)].sort((x, y) => y - x);
					if ((a + .05) / (b + .05) < 4.5) bad.add(e.tagName + "." + e.className + "#" + e.id + " " + ((a + .05) / (b + .05)).toFixed(2));
				}
				return [...bad].join("; ");
			})()`, "")
		}
	}
	s.does(`document.body.toggleAttribute("data-stale", false)`)
	dark(s.Window, "light")
	is(s, `[...document.querySelectorAll("input, select, button, canvas, table, nav, section, ol[tabindex], a")].filter(e => {
		const label = e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") && document.getElementById(e.getAttribute("aria-labelledby"))?.textContent);
		return !(label || e.labels?.[0]?.textContent || e.caption?.textContent || (e.matches("button, a") && e.textContent.trim()) || e.closest("[hidden], dialog:not([open])"));
	}).map(e => e.outerHTML.slice(0, 80)).join()`, "")
	is(s, `[...document.querySelectorAll("th")].filter(h => !h.textContent.trim()).length`, 0)
	is(s, `["trouble-what", "why", "connection", "dialog-trouble"].map(id => document.getElementById(id).getAttribute("role")).join()`, "alert,status,status,alert")
	is(s, `document.querySelectorAll("[aria-live]").length + document.querySelectorAll("#trouble-age[role], #trouble[role]").length`, 0)
	s.Do(chromedp.EmulateViewport(360, 800))
	is(s, `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > 361 && !e.closest(".scroll, .skip, .unseen")).map(e => e.tagName + "#" + e.id + "." + e.className).join()`, "")
	is(s, `document.documentElement.scrollWidth`, 360)
	is(s, `[...document.querySelectorAll("#ranges tbody tr")].every(r => r.offsetHeight < 80)`, true)
	s.Shoot("narrow")
	s.Do(chromedp.EmulateViewport(1280, 1000))
}

// words: the format of numbers.
func (s *shown) words() {
	is(s, `import("/format.js").then(f => [f.duration(-1), f.duration(119.4), f.duration(120), f.duration(7199), f.duration(7200), f.duration(172799), f.duration(172800),
		f.bytes(1023), f.bytes(1024), f.bytes("1073741824"), f.percent(.12345), f.count(1234567), f.counted(1, "x"), f.counted("2", "x"), f.number(1234.5),
		f.rangeText({ start: "a", limit: "end" }), f.limitText(f.keyOf("end")), f.limitText(255n), f.keyText(255n)].join("|"))`,
		"0 s|119 s|2 min|120 min|2 h|48 h|2 days|1,020 B|1 KiB|1 GiB|12.3 %|1,234,567|1 x|2 xs|1,230|a-end|end|00000000000000ff|00000000000000ff")
	is(s, `import("/format.js").then(f => new Set(Array.from({ length: 60 }, (_, i) => f.colour(i, false))).size + new Set(Array.from({ length: 60 }, (_, i) => f.colour(i, true))).size)`, 120)
	is(s, `import("/format.js").then(f => {
		const hue = owner => parseFloat(f.colour(owner, false).slice(4)), apart = (a, b) => Math.min((a - b + 360) % 360, (b - a + 360) % 360);
		return Array.from({ length: 60 }, (_, i) => i + 1).filter(i => apart(hue(i), hue(i + 1)) < 60 || apart(hue(i), hue(i + 2)) < 30).join();
	})`, "")
}
