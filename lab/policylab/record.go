package policylab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// parseJSON reads a record written as a JSON object.
func parseJSON(line string) (record, error) {
	var fields struct {
		Period *int     `json:"period"`
		Key    *string  `json:"key"`
		Range  *string  `json:"range"`
		Rate   *float64 `json:"rate"`
	}
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&fields); err != nil {
		return record{}, fmt.Errorf(`want an object such as {"period": 0, "key": "4f21c3aa00000000", "rate": 130.5}: %w`, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return record{}, errors.New("there is more behind the object: write one on a line")
	}
	switch {
	case fields.Period == nil:
		return record{}, errors.New("period is missing")
	case fields.Rate == nil:
		return record{}, errors.New("rate is missing")
	case (fields.Key == nil) == (fields.Range == nil):
		return record{}, errors.New("want either a key or a range")
	}
	r := record{period: *fields.Period, rate: *fields.Rate, single: fields.Key != nil}
	var err error
	if r.single {
		r.keys, err = parseKey(*fields.Key)
	} else {
		r.keys, err = leasehold.ParseRange(*fields.Range)
	}
	if err != nil {
		return record{}, err
	}
	return r, r.validate()
}

// parseCSV reads a record written as three fields. They need no quotes, so none
// are understood.
func parseCSV(line string) (record, error) {
	fields := strings.Split(line, ",")
	if len(fields) != 3 {
		return record{}, fmt.Errorf("has %d fields, want 3: %s", len(fields), csvHeader)
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	r := record{single: !strings.Contains(fields[1], "-")}
	var err error
	if r.period, err = strconv.Atoi(fields[0]); err != nil {
		return record{}, fmt.Errorf("period is %q, want a whole number", fields[0])
	}
	if r.rate, err = strconv.ParseFloat(fields[2], 64); err != nil {
		return record{}, fmt.Errorf("rate is %q, want a number", fields[2])
	}
	if r.single {
		r.keys, err = parseKey(fields[1])
	} else {
		r.keys, err = leasehold.ParseRange(fields[1])
	}
	if err != nil {
		return record{}, err
	}
	return r, r.validate()
}

// parseKey reads a key as the range of that key alone.
func parseKey(s string) (leasehold.Range, error) {
	k, err := leasehold.ParseKey(s)
	return leasehold.Range{Start: k, Limit: k + 1}, err
}

func (r record) validate() error {
	switch {
	case r.period < 0 || r.period >= MaxPeriods:
		return fmt.Errorf("period is %d, want 0 to %d", r.period, MaxPeriods-1)
	case !(r.rate >= 0 && r.rate <= maxRecordedRate): // so written, NaN fails
		return fmt.Errorf("rate is %v, want 0 to %g", r.rate, float64(maxRecordedRate))
	}
	return nil
}
