package main

import (
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

func encodeRenewal() (func(), error) {
	_, _, request, err := renewalRequest()
	return func() {
		if _, err := proto.Marshal(wire.FromLeaseRequest(request.LeaseRequest)); err != nil {
			panic(err)
		}
	}, err
}

func decodeRenewal() (func(), error) {
	_, _, request, err := renewalRequest()
	if err != nil {
		return nil, err
	}
	bytes, err := proto.Marshal(wire.FromLeaseRequest(request.LeaseRequest))
	return func() {
		var message leaseholdv1.HoldRequest
		if err := proto.Unmarshal(bytes, &message); err != nil {
			panic(err)
		}
		if _, err := wire.ToLeaseRequest(&message, protocol.DefaultLimits); err != nil {
			panic(err)
		}
	}, err
}

// told is how many changes a lookup is told of at once.
const told = 8

// update is what it is told.
func update() (*protocol.LookupReply, error) {
	t, err := newTable()
	if err != nil {
		return nil, err
	}
	from := t.LSN()
	changes, err := moves(t, 0, told)
	return &protocol.LookupReply{Namespace: namespace, Leader: "m1", Term: 1, From: from, LSN: t.LSN(), Changes: changes}, err
}

func encodeUpdate() (func(), error) {
	reply, err := update()
	return func() {
		if _, err := wire.EncodeUpdate(reply); err != nil {
			panic(err)
		}
	}, err
}

func decodeUpdate() (func(), error) {
	reply, err := update()
	if err != nil {
		return nil, err
	}
	bytes, err := proto.Marshal(wire.FromLookupReply(reply))
	return func() {
		var message leaseholdv1.FollowResponse
		if err := proto.Unmarshal(bytes, &message); err != nil {
			panic(err)
		}
		if _, err := wire.ToLookupReply(message.GetUpdate(), protocol.DefaultLimits); err != nil {
			panic(err)
		}
	}, err
}
