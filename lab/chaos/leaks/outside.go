package leaks

import (
	"errors"

	"github.com/prometheus/procfs"
)

// Outside is what the system knows of a process.
func Outside(pid int) (Sample, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Sample{}, err
	}
	status, err := p.NewStatus()
	open, failed := p.FileDescriptorsLen()
	return Sample{Memory: float64(status.RssAnon), Descriptors: float64(open)}, errors.Join(err, failed)
}
