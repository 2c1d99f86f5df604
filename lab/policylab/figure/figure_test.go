package figure

import (
	"bytes"
	"fmt"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/policylab"
	"github.com/leasehold-dev/leasehold/partition"
)

// results returns the results of two policies with a pool that grows; one of them moves keys.
func results(t *testing.T) []*policylab.Result {
	t.Helper()
	hot, err := policylab.Hot(0.3, policylab.Zipf{Alpha: 0, Keys: 1e9})
	if err != nil {
		t.Fatal(err)
	}
	var all []*policylab.Result
	for _, p := range []partition.Policy{partition.Consistent{}, partition.Even{}} {
		c := policylab.Usual()
		c.Policy, c.Workload, c.Owners, c.Periods, c.KeepLoads, c.Cells = p, hot, 10, 5, true, 16
		c.Changes = []policylab.Change{{Period: 3, Owners: 2}}
		r, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func TestDrawSVG(t *testing.T) {
	var first, second bytes.Buffer
	for _, to := range []*bytes.Buffer{&first, &second} {
		if err := Draw(to, SVG, results(t), 0.2); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same results give different images")
	}
	for _, text := range []string{
		"<svg", "</svg>", "Most loaded server", "Keys moved so far", "Ranges", "minutes",
		"consistent: servers above 40 %: 1 at first, 1 at last", "even: servers above 40 %: 1 at first, 1 at last",
	} {
		if !strings.Contains(first.String(), text) {
			t.Errorf("the image lacks %q", text)
		}
	}
}

func TestDrawPNG(t *testing.T) {
	var out bytes.Buffer
	if err := Draw(&out, PNG, results(t)[:1], 0.2); err != nil {
		t.Fatal(err)
	}
	image, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	if size := image.Bounds().Size(); size.X < 1000 || size.Y < 500 {
		t.Errorf("the image has %v pixels", size)
	}
}

// TestDrawManyServers: the heaviest are drawn, and the title has their number.
func TestDrawManyServers(t *testing.T) {
	r := &policylab.Result{Policy: "p", Samples: make([]policylab.Sample, 2), Loads: make([][]float32, 2)}
	for i := range maxLines + 7 {
		r.Loads[0] = append(r.Loads[0], 0.5+float32(i)/1000)
		r.Loads[1] = append(r.Loads[1], 0.1)
	}
	servers := heaviest(r.Loads, 0.4)
	if len(servers) != maxLines+7 || servers[0] != maxLines+6 {
		t.Errorf("%d servers, the heaviest is %d", len(servers), servers[0])
	}
	p := heavilyLoaded(r, lineColor(0), 0.2)
	if want := fmt.Sprintf("%d at first, 0 at last\n(the %d heaviest of %d)", maxLines+7, maxLines, maxLines+7); !strings.HasSuffix(p.Title.Text, want) {
		t.Errorf("the title is %q, want it to end with %q", p.Title.Text, want)
	}
}

func TestFormatOf(t *testing.T) {
	for file, want := range map[string]Format{"a.png": PNG, "dir.x/B.SVG": SVG, "a.pdf": "", "png": "", "": "", "a.": ""} {
		got, err := FormatOf(file)
		if got != want || (err == nil) != (want != "") || err != nil && leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%q: %q, %v", file, got, err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestDrawReportsErrors(t *testing.T) {
	for _, f := range []Format{SVG, PNG} {
		if err := Draw(full{}, f, results(t)[:1], 0.2); err == nil {
			t.Errorf("%s: no error", f)
		}
	}
}
