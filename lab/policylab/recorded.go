package policylab

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// Limits of a recorded workload. Reading ends at a limit.
const (
	maxRecords = 4_000_000
	maxLine    = 4096
)

// maxRecordedRate prevents overflow of sums.
const maxRecordedRate = 1e15

// A record is a line of a recorded workload.
type record struct {
	period int
	keys   leasehold.Range
	single bool // given as a key
	rate   float64
}

// ReadRecorded reads a workload from lines of JSON or CSV. It is CSV if the first line is the header
//
//	period,keys,rate
//
// and JSON otherwise, one object on a line, with either a key or a range:
//
//	{"period": 0, "key": "4f21c3aa00000000", "rate": 130.5}
//	{"period": 0, "range": "8000000000000000-end", "rate": 2000}
//
// Keys are 16 hexadecimal digits and ranges start-limit, as leasehold prints them; the CSV field keys is
// either of them. A rate is the total cost of the keys per second, in any unit, spread evenly over a range.
// Periods count from 0 and do not decrease from line to line. A missing period is equal to the previous one,
// and so are all after the last. Keys that are not listed in a period have no cost. Within a period ranges do
// not overlap, and a key occurs once; a key in a range adds to it. Empty lines, and those that begin with #,
// are skipped.
//
// It reads at most 4,000,000 records, and needs about 64 bytes for each. An error has the number of the line.
func ReadRecorded(from io.Reader) (Workload, error) {
	r := &recordReader{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	number := 0
	for lines.Scan() {
		number++
		if err := r.line(strings.TrimSpace(lines.Text())); err != nil {
			return nil, badLine(number, err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, badLine(number+1, fmt.Errorf("longer than %d bytes: is this a file of loads?", maxLine))
	case err != nil:
		return nil, &leasehold.Error{Op: opRecorded, Kind: leasehold.ErrUnavailable, Err: err}
	}
	if err := r.endPeriod(); err != nil {
		return nil, badLine(number, err)
	}
	if len(r.done) == 0 {
		return nil, leasehold.Errorf(opRecorded, leasehold.ErrInvalid, "", "no records")
	}
	return r.done, nil
}

const opRecorded = "read recorded loads"

func badLine(number int, err error) error {
	return &leasehold.Error{Op: opRecorded, Kind: leasehold.ErrInvalid, Subject: fmt.Sprintf("line %d", number), Err: err}
}

// recorded is a workload with some periods, sorted.
type recorded []recordedLoad

type recordedLoad struct {
	period int
	load   *Load
}

// At returns the load of the period, or of the last one before it. Before the first, all costs are 0.
func (w recorded) At(period int) *Load {
	i, _ := slices.BinarySearchFunc(w, period+1, func(r recordedLoad, p int) int { return cmp.Compare(r.period, p) })
	if i == 0 {
		return newLoad(nil, nil)
	}
	return w[i-1].load
}

// A recordReader collects the records of one period after the other.
type recordReader struct {
	csv     bool
	begun   bool // the first line has been read
	records int
	period  int
	keys    []KeyCost
	ranges  []RangeCost
	done    recorded
}

const csvHeader = "period,keys,rate"

func (r *recordReader) line(text string) error {
	if text == "" || text[0] == '#' {
		return nil
	}
	if !r.begun {
		r.begun = true
		if r.csv = strings.ReplaceAll(text, " ", "") == csvHeader; r.csv {
			return nil
		}
		if text[0] != '{' {
			return fmt.Errorf("want the header %s, or an object such as %s", csvHeader, `{"period": 0, "key": "4f21c3aa00000000", "rate": 130.5}`)
		}
	}
	parse := parseJSON
	if r.csv {
		parse = parseCSV
	}
	rec, err := parse(text)
	if err != nil {
		return err
	}
	return r.add(rec)
}

func (r *recordReader) add(rec record) error {
	if r.records++; r.records > maxRecords {
		return fmt.Errorf("more than %d records: keep the hottest keys, and ranges for the rest", maxRecords)
	}
	if rec.period < r.period {
		return fmt.Errorf("period %d comes after period %d: sort the lines by period", rec.period, r.period)
	}
	if rec.period > r.period {
		if err := r.endPeriod(); err != nil {
			return err
		}
		r.period = rec.period
	}
	if rec.single {
		r.keys = append(r.keys, KeyCost{rec.keys.Start, rec.rate})
	} else {
		r.ranges = append(r.ranges, RangeCost{rec.keys, rec.rate})
	}
	return nil
}

// endPeriod creates the load of the collected records.
func (r *recordReader) endPeriod() error {
	if len(r.keys)+len(r.ranges) == 0 {
		return nil
	}
	slices.SortFunc(r.ranges, func(a, b RangeCost) int { return cmp.Compare(a.Range.Start, b.Range.Start) })
	for i := 1; i < len(r.ranges); i++ {
		if a, b := r.ranges[i-1].Range, r.ranges[i].Range; a.Overlaps(b) {
			return fmt.Errorf("ranges of period %d overlap before this line: %v and %v", r.period, a, b)
		}
	}
	load := newLoad(r.keys, r.ranges)
	if len(load.keys) < len(r.keys) {
		return fmt.Errorf("a key of period %d occurs twice before this line", r.period)
	}
	r.done = append(r.done, recordedLoad{r.period, load})
	r.keys, r.ranges = nil, nil
	return nil
}

// parseJSON parses a record in JSON.
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
		return record{}, errors.New("more than one object: write one per line")
	}
	switch {
	case fields.Period == nil:
		return record{}, errors.New("period is missing")
	case fields.Rate == nil:
		return record{}, errors.New("rate is missing")
	case (fields.Key == nil) == (fields.Range == nil):
		return record{}, errors.New("want either a key or a range")
	}
	single := fields.Key != nil
	return newRecord(*fields.Period, *fields.Rate, single, *cmp.Or(fields.Key, fields.Range))
}

// parseCSV parses a record of three fields. Quotes are not supported, because the fields need none.
func parseCSV(line string) (record, error) {
	fields := strings.Split(line, ",")
	if len(fields) != 3 {
		return record{}, fmt.Errorf("has %d fields, want 3: %s", len(fields), csvHeader)
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	period, err := strconv.Atoi(fields[0])
	if err != nil {
		return record{}, fmt.Errorf("period is %q, want a whole number", fields[0])
	}
	rate, err := strconv.ParseFloat(fields[2], 64)
	if err != nil {
		return record{}, fmt.Errorf("rate is %q, want a number", fields[2])
	}
	return newRecord(period, rate, !strings.Contains(fields[1], "-"), fields[1])
}

// newRecord returns the record of a single key, or of a range.
func newRecord(period int, rate float64, single bool, keys string) (record, error) {
	r := record{period: period, single: single, rate: rate}
	var err error
	if single {
		r.keys.Start, err = leasehold.ParseKey(keys)
		r.keys.Limit = r.keys.Start + 1
	} else {
		r.keys, err = leasehold.ParseRange(keys)
	}
	switch {
	case err != nil:
		return record{}, err
	case period < 0 || period >= MaxPeriods:
		return record{}, fmt.Errorf("period is %d, want 0 to %d", period, MaxPeriods-1)
	case !(rate >= 0 && rate <= maxRecordedRate): // in this form, NaN fails
		return record{}, fmt.Errorf("rate is %v, want 0 to %g", rate, float64(maxRecordedRate))
	}
	return r, nil
}
