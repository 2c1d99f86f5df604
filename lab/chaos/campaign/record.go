package campaign

import "os"

// A record is the file for reports as JSON. What an earlier run has left stays there until the
// first report.
type record struct {
	file  *os.File // nil: none
	begun bool
}

// newRecord opens the file. Without a path there is none.
func newRecord(path string) (*record, error) {
	if path == "" {
		return &record{}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666) //nolint:gosec // whoever the umask allows it may read it
	return &record{file: f}, err
}

// add adds a report to those of this run.
func (r *record) add(report string) error {
	if r.file == nil {
		return nil
	}
	if info, err := r.file.Stat(); err != nil {
		return err
	} else if !r.begun && info.Mode().IsRegular() {
		if err := r.file.Truncate(0); err != nil {
			return err
		}
	}
	r.begun = true
	_, err := r.file.WriteString(report)
	return err
}

func (r *record) close() {
	if r.file != nil {
		_ = r.file.Close() // each report was written
	}
}
