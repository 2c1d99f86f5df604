package transcript

import (
	"fmt"
	"os"
	"testing"

	"github.com/cockroachdb/datadriven"
)

func TestZZ(t *testing.T) {
	path := os.Getenv("SCRIPT")
	if path == "" {
		t.Skip()
	}
	w := newWorld()
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		lines := script(d)
		quiet := lines[0] == "quietly"
		if quiet {
			lines = lines[1:]
		}
		for _, l := range lines {
			fmt.Println(">", l)
			out, err := w.play([]string{l})
			if err != nil {
				fmt.Println("ERR", err)
				os.Exit(1)
			}
			if !quiet {
				fmt.Print(out)
				if out == "ok" {
					fmt.Println()
				}
			}
		}
		fmt.Println()
		return d.Expected
	})
}
