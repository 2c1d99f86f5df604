package queue

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// FuzzPlace: a parsed place can be written in an event and parsed again, and cannot inject
// another event.
func FuzzPlace(f *testing.F) {
	f.Add("epoch=a&after=5", "a/5")
	f.Add("after=5", "a/b/5")
	f.Add("epoch=a%0Adata:x&after=+5", "a\ndata: x/5")
	f.Add("epoch=&after=", "/18446744073709551616")
	f.Fuzz(func(t *testing.T, query, id string) {
		for _, parse := range []func() (Place, error){
			func() (Place, error) {
				values, err := url.ParseQuery(query)
				if err != nil {
					return Place{}, leasehold.Errorf("", leasehold.ErrInvalid, "", "%w", err)
				}
				return parsePlace("q", values)
			},
			func() (Place, error) { return parseEventID("q", id) },
		} {
			at, err := parse()
			if err != nil {
				if leasehold.KindOf(err) != leasehold.ErrInvalid {
					t.Fatal(err)
				}
				continue
			}
			var out strings.Builder
			if err := writeEvents(&out, Batch{Epoch: at.Epoch}, at); err != nil {
				t.Fatal(err)
			}
			if strings.Count(out.String(), "\n") != 4 || strings.Contains(out.String(), "\r") {
				t.Fatalf("%q: %q", at.Epoch, out.String())
			}
			if again, err := parseEventID("q", fmt.Sprintf("%s/%d", at.Epoch, at.Have)); err != nil || again != at {
				t.Fatalf("%+v is parsed as %+v, %v", at, again, err)
			}
		}
	})
}
