package main

import "os"

// A chaosRecord is the file of --report. What an earlier run has left stays there until
// there is something else to say.
type chaosRecord struct {
	file  *os.File // nil: nobody wants one
	begun bool
}

// newRecord finds out whether there can be such a file. Without a path there is none.
func newRecord(path string) (*chaosRecord, error) {
	if path == "" {
		return &chaosRecord{}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666) //nolint:gosec // whoever the umask allows it may read it
	return &chaosRecord{file: f}, err
}

// add adds a report to those of this run.
func (r *chaosRecord) add(report string) error {
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

func (r *chaosRecord) close() {
	if r.file != nil {
		_ = r.file.Close() // each report was written
	}
}
