package main

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// TestNumbers: listeners find the number of a change in each server's messages.
func TestNumbers(t *testing.T) {
	encode := func(m proto.Message) []byte {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	update := encode(&leaseholdv1.FollowResponse{Version: 1, Kind: &leaseholdv1.FollowResponse_Update{Update: &leaseholdv1.Update{Namespace: "n", Term: 3, Lsn: 300}}})
	watch := encode(&pb.WatchResponse{Header: &pb.ResponseHeader{ClusterId: 1, MemberId: 2, Revision: 7}, WatchId: 9})
	for name, c := range map[string]struct {
		dialect string
		message []byte
		want    uint64
	}{
		"update":      {nameLeasehold, update, 300},
		"watch":       {nameEtcd, watch, 7},
		"push":        {namePush, message(12, 1600), 12},
		"short push":  {namePush, message(12, 0), 12},
		"no update":   {nameLeasehold, encode(&leaseholdv1.FollowResponse{Version: 1}), 0},
		"nothing":     {nameEtcd, nil, 0},
		"no protobuf": {nameLeasehold, []byte{0xff, 0xff}, 0},
	} {
		if got := loadgen.Find(c.message, dialects()[c.dialect].path...); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestMessage: a push has the requested number of bytes.
func TestMessage(t *testing.T) {
	for _, size := range []int{100, 1_603, 4_096, 70_000} {
		if got := len(message(5, size)); got != size {
			t.Errorf("%d bytes, want %d", got, size)
		}
	}
}

func TestSizes(t *testing.T) {
	all, short := sizes(false, 20_000)
	if last := all[3]; !short || last != (size{19_000, 19_000}) || len(concurrentStarters(last)) != 3 {
		t.Errorf("few files: %v, %v", all, short)
	}
	all, short = sizes(false, 1<<20)
	if last := all[3]; short || last != (size{50_000, 50_000}) {
		t.Errorf("many files: %v, %v", all, short)
	}
	for _, s := range all {
		if s.own() && s.conns > 10_000 {
			continue
		}
		if got := concurrentStarters(s); len(got) != 1 || len(got[0]) != 3 {
			t.Errorf("%v has heats of %v", s, got)
		}
	}
}
