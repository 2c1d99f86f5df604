package policycmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/lab/policylab"
	"github.com/leasehold-dev/leasehold/lab/policylab/figure"
)

// draw writes the plot to its file: all of it, or nothing.
func (o *tryOptions) draw(results []*policylab.Result) error {
	format, err := figure.FormatOf(o.plot)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(o.plot), ".plot-*")
	if err != nil {
		return cli.Fail(fmt.Errorf("writing the plot: %w", err))
	}
	err = figure.Draw(file, format, results, o.config.MeanLoad)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), o.plot)
	}
	if err != nil {
		return cli.Fail(errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}
