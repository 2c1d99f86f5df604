package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// TestAChangeIsNotAskedForTwice: a manager that does not answer may have done
// what it was asked, so no other is asked.
func TestAChangeIsNotAskedForTwice(t *testing.T) {
	first, second := startFake(t, &fakeManager{}), startFake(t, &fakeManager{})
	c := &client{managers: []string{first.addr, second.addr}, timeout: defaultTimeout}
	err := c.change(t.Context(), func(context.Context, admin) error {
		return leasehold.Errorf("create namespace", leasehold.Unavailable, "presence", "the leader did not answer")
	})
	if err == nil || !strings.Contains(err.Error(), "the leader did not answer\nIt may have been done all the same") {
		t.Errorf("got %v", err)
	}
	if got := second.called(); len(got) != 0 {
		t.Errorf("the second manager was asked: %q", got)
	}
}

// TestAQuestionIsAskedElsewhere, if whoever was asked cannot answer.
func TestAQuestionIsAskedElsewhere(t *testing.T) {
	for _, failure := range []error{
		leasehold.Errorf("status", leasehold.NotLeader, "", "nobody leads"),
		leasehold.Errorf("status", leasehold.Unavailable, "", "the store is away"),
		grpcstatus.Error(codes.DeadlineExceeded, "too slow"),
	} {
		first, second := startFake(t, &fakeManager{}), startFake(t, &fakeManager{})
		c := &client{managers: []string{first.addr, second.addr}, timeout: defaultTimeout}
		calls := 0
		if err := c.ask(t.Context(), func(ctx context.Context, to admin) error {
			if calls++; calls == 1 {
				return failure
			}
			_, err := to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: 1})
			return err
		}); err != nil {
			t.Errorf("%v: %v", failure, err)
		}
		if got := second.called(); !slices.Equal(got, []string{"GetStatus"}) {
			t.Errorf("%v: the second manager was asked %q", failure, got)
		}
	}
}

func TestInterruptedQuestion(t *testing.T) {
	f := startFake(t, &fakeManager{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := run(ctx, []string{"status", "--managers", f.addr}, io.Discard, io.Discard); got != int(statusInterrupted) {
		t.Errorf("exit status %d, want %d", got, statusInterrupted)
	}
}

// TestAnswersThatCannotBeWritten are an error of every command.
func TestAnswersThatCannotBeWritten(t *testing.T) {
	f := startFake(t, &fakeManager{events: events()})
	for _, args := range [][]string{
		{"namespace", "create", "presence"},
		{"namespace", "list"},
		{"namespace", "show", "presence"},
		{"status"},
		{"owners"},
		{"ranges", "--json"},
		{"lookup", "x"},
		{"history", "x"},
		{"member", "list"},
		{"watch"},
	} {
		var errs bytes.Buffer
		got := run(t.Context(), append(args, "--managers", f.addr), broken{}, &errs)
		if got != int(statusTrouble) || !strings.Contains(errs.String(), "disk full") || strings.Contains(errs.String(), "--help") {
			t.Errorf("%q: exit status %d, %q", args, got, errs.String())
		}
	}
}
