package leasemap

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
)

// Any record of another server is either refused, or its encoding is the
// same record.
func FuzzRecord(f *testing.F) {
	f.Add(append(appendHead(nil, "name", Version{5, 17}, time.Second), "value"...))
	f.Add(appendDeleted(nil, "name"))
	f.Add(append(appendDeleted(nil, "name"), "more"...))
	f.Add([]byte("\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")) // a name that is too long
	f.Add([]byte("\x01\x00\x00"))
	f.Add(appendSelect(nil, "rooms"))
	f.Add(appendUnsaved(appendDeleted(nil, "name"), time.Second))
	f.Add(appendVersion(appendAlarm(appendName(nil, kindValue, "name"), time.Unix(0, 5)), Version{5, 17}, 0))
	f.Add(appendVersion(appendUnsaved(appendName(nil, kindValue, "name"), 1), Version{5, 17}, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		if isSelect(data) {
			name, err := parseSelect(data)
			if written := appendSelect(nil, name); err == nil && len(written) > len(data) {
				t.Fatalf("%q selects %q, which is encoded as %q", data, name, written)
			}
		}
		r, err := parseRecord(data)
		if err != nil {
			if leasehold.KindOf(err) != leasehold.ErrInvalid {
				t.Fatal(err)
			}
			return
		}
		if r.left < 0 || len(r.name)+len(r.value) > len(data) {
			t.Fatalf("%+v of %d bytes", r, len(data))
		}
		written := appendName(nil, kindValue, r.name)
		if r.deleted {
			written = appendDeleted(nil, r.name)
		}
		if r.unsaved {
			written = appendUnsaved(written, r.age)
		}
		if !r.alarm.IsZero() {
			written = appendAlarm(written, r.alarm)
		}
		if !r.deleted {
			written = append(appendVersion(written, r.version, r.left), r.value...)
		}
		again, err := parseRecord(written)
		if diff := cmp.Diff(r, again, cmp.AllowUnexported(record{})); diff != "" || err != nil || len(written) > len(data) {
			t.Fatalf("%d bytes are encoded again as %d: %v (-first +second):\n%s", len(data), len(written), err, diff)
		}
		if r.deleted && !r.unsaved && len(written) != len(data) && len(data) <= 2+1+len(r.name) {
			t.Fatalf("%q is not the deletion of %q", data, r.name)
		}
	})
}

// Only canonical texts are versions, and decoding reverses encoding.
func FuzzVersion(f *testing.F) {
	for _, text := range []string{"", "5.17", "0.0", "1.18446744073709551615", "1.0", "0.1", "+1.2", "1.2.3", "01.2", "none"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v Version
		if err := v.UnmarshalText([]byte(text)); err != nil {
			if leasehold.KindOf(err) != leasehold.ErrInvalid {
				t.Fatal(err)
			}
			return
		}
		if v.Exists() == (text == "") {
			t.Fatalf("%q is decoded as %+v", text, v)
		}
		written, err := v.MarshalText()
		if err != nil || string(written) != text {
			t.Fatalf("%q is decoded as %+v, which is encoded as %q, %v", text, v, written, err)
		}
	})
}

// Every version survives encoding and decoding.
func FuzzVersionOf(f *testing.F) {
	f.Add(uint64(1), uint64(1<<64-1))
	f.Add(uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, generation, number uint64) {
		v := Version{leasehold.Generation(generation), number}
		text, err := v.MarshalText()
		var again Version
		if err == nil {
			err = again.UnmarshalText(text)
		}
		if err != nil || again != v && v.Exists() {
			t.Fatalf("%+v is encoded as %q and decoded as %+v: %v", v, text, again, err)
		}
	})
}
