package feed

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// now is the time of arrival in tests.
func now() time.Time { return time.Date(2008, 11, 3, 12, 0, 0, 0, time.UTC) }

// TestParse: all formats give the same activities.
func TestParse(t *testing.T) {
	at := time.Date(2008, 11, 3, 10, 30, 0, 0, time.UTC)
	for _, name := range []string{"rss091.xml", "rss10.xml", "rss20.xml", "atom10.xml", "feed.json", "latin1.xml"} {
		t.Run(name, func(t *testing.T) {
			document, err := os.ReadFile("testdata/" + name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parse(document, now())
			if err != nil {
				t.Fatal(err)
			}
			want := []Activity{
				{Actor: "Zoë", Title: "Zoë updated her profile", Link: "https://example.com/1", At: at},
				{Actor: "Zoë", Title: "Zoë added Bob & Carol as friends", Link: "https://example.com/2", At: at.Add(10 * time.Minute)},
			}
			if name == "rss091.xml" { // without authors and dates
				for i := range want {
					want[i].Actor, want[i].At = "", now()
				}
			}
			for i := range got {
				got[i].ID = ""
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSameItem: a duplicate is detected in another feed and format.
func TestSameItem(t *testing.T) {
	one, err := parse([]byte(`<rss version="2.0"><channel><item><title>x</title><guid>https://example.com/1</guid></item></channel></rss>`), now())
	if err != nil {
		t.Fatal(err)
	}
	other, err := parse([]byte(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>https://example.com/1</id><title>x</title></entry></feed>`), now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if got := merge(one, other, 10); len(got) != 1 {
		t.Errorf("%v and %v are merged to %v", one, other, got)
	}
}

func TestDates(t *testing.T) {
	for stated, want := range map[string]time.Time{
		"Mon, 03 Nov 2008 10:30:00 +0100": time.Date(2008, 11, 3, 9, 30, 0, 0, time.UTC),
		"Mon, 03 Nov 2099 10:30:00 GMT":   now(), // it would stay first
		"Sat, 03 Nov 0001 10:30:00 GMT":   now(),
		"yesterday":                       now(),
		"":                                now(),
	} {
		got, err := parse(rss("<item><title>x</title><pubDate>"+stated+"</pubDate></item>"), now())
		if err != nil || len(got) != 1 || !got[0].At.Equal(want) {
			t.Errorf("%q: %v, %v", stated, got, err)
		}
	}
}

func rss(items string) []byte {
	return []byte(`<rss version="2.0"><channel><title>t</title><link>https://example.com/</link>` + items + `</channel></rss>`)
}

// TestPlain: titles are converted to plain text.
func TestPlain(t *testing.T) {
	for title, want := range map[string]string{
		"Alice &lt;b&gt;updated&lt;/b&gt; her   profile": "Alice updated her profile",
		"<![CDATA[Tom &amp; Jerry]]>":                    "Tom & Jerry",
		"Tom &amp; Jerry":                                "Tom & Jerry",
		"1 &lt; 2":                                       "1 < 2",
		"&lt;script&gt;alert(1)&lt;/script&gt;x":         "alert(1)x",
		"&amp;lt;script&amp;gt;":                         "<script>",
		strings.Repeat("é", MaxTitle):                    strings.Repeat("é", MaxTitle/2),
		"\x01bell\x07":                                   "bell",
	} {
		got, err := parse(rss("<item><title>"+title+"</title></item>"), now())
		if err != nil || len(got) != 1 || got[0].Title != want {
			t.Errorf("%q: %q, %v", title, got, err)
		}
	}
}

func TestLinks(t *testing.T) {
	long := "https://example.com/" + strings.Repeat("x", maxLink)
	for address, want := range map[string]string{
		"https://example.com/?a=1&amp;b=2": "https://example.com/?a=1&b=2",
		"javascript:alert(1)":              "",
		"data:text/html,x":                 "",
		"//example.com":                    "",
		long:                               "",
	} {
		got, err := parse(rss("<item><title>x</title><link>"+address+"</link></item>"), now())
		if err != nil || len(got) != 1 || got[0].Link != want {
			t.Errorf("%q: %q, %v", address, got, err)
		}
	}
}

// TestUntitled: an item without a title gets one from its content or link, or is dropped.
func TestUntitled(t *testing.T) {
	got, err := parse(rss("<item><description>&lt;p&gt;hello&lt;/p&gt;</description></item><item><link>https://example.com/1</link></item><item/>"), now())
	if err != nil || len(got) != 2 || got[0].Title != "hello" || got[1].Title != "https://example.com/1" {
		t.Errorf("%v, %v", got, err)
	}
}

// TestNoFeed: malformed and too complex feeds are rejected.
func TestNoFeed(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString(`<!DOCTYPE rss [<!ENTITY lol0 "lol">`)
	for i := range 10 {
		fmt.Fprintf(&laughs, `<!ENTITY lol%d "%s">`, i+1, strings.Repeat(fmt.Sprintf("&lol%d;", i), 10))
	}
	laughs.WriteString(`]>`)
	got, err := parse([]byte(laughs.String()+`<rss version="2.0"><channel><item><title>&lol10;</title></item></channel></rss>`), now())
	if err == nil && (len(got) != 1 || len(got[0].Title) > 10) {
		t.Errorf("entities were expanded: %v", got)
	}
	for what, document := range map[string]string{
		"nothing":             "",
		"text":                "hello",
		"HTML":                "<!DOCTYPE html><html><body>hello</body></html>",
		"other XML":           "<a><b/></a>",
		"half a feed":         `<rss version="2.0"><channel><item><title>x`,
		"other JSON":          `{"items": [{"title": "x"}]}`,
		"half of JSON":        `{"version": "https://jsonfeed.org/version/1.1", "items": [`,
		"JSON without items":  `{"version": "https://jsonfeed.org/version/1.1", "items": [null]}`,
		"deep JSON":           `{"version": "https://jsonfeed.org/version/1.1", "items": ` + strings.Repeat("[", 100_000) + "}",
		"an unknown encoding": `<?xml version="1.0" encoding="klingon"?><rss version="2.0"><channel/></rss>`,
		"deep":                string(rss("<item>" + strings.Repeat("<x:a>", 200_000) + "</item>")),
		"many attributes":     string(rss("<item " + strings.Repeat(`a="b" `, 65) + "/>")),
		"many parts":          string(rss("<item><x:a>" + strings.Repeat("<b/>", maxTokens/2) + "</x:a></item>")),
	} {
		began := time.Now()
		if got, err := parse([]byte(document), now()); err == nil {
			t.Errorf("%s: %v", what, got)
		} else if len(err.Error()) > 500 {
			t.Errorf("%s: the error has %d bytes", what, len(err.Error()))
		} else {
			t.Logf("%s: %v (%v)", what, err, time.Since(began))
		}
	}
}

// TestCost: the worst feeds that the structure check accepts are parsed within seconds.
func TestCost(t *testing.T) {
	declared := ""
	for i := range maxAttributes {
		declared += fmt.Sprintf(`xmlns:n%d="x" `, i)
	}
	for what, document := range map[string]string{
		"texts":      "<item><x:a>" + strings.Repeat(strings.Repeat("x", 100)+"<b/>", maxTokens/4) + "</x:a></item>",
		"namespaces": strings.Repeat("<item "+declared+">", maxDepth-3) + strings.Repeat("<b/>", maxTokens/3) + strings.Repeat("</item>", maxDepth-3),
	} {
		began := time.Now()
		_, err := parse(rss(document), now())
		if took := time.Since(began); err != nil || took > 20*time.Second {
			t.Errorf("%s: %v after %v", what, err, took)
		} else {
			t.Logf("%s: %v", what, took)
		}
	}
}
