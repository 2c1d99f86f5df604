package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// A member is what a process does in its role.
type member interface {
	// obey carries an order out.
	obey(ctx context.Context, o order) (answer, error)
	// close ends what the member started, and waits for it.
	close() error
}

// roles are what a process of this program can be.
func roles() map[string]func(ctx context.Context, args []string) (m member, info string, err error) {
	return map[string]func(context.Context, []string) (member, string, error){
		"flease-member":    startFlease,
		"etcd-member":      startEtcd,
		"zookeeper-member": startZooKeeper,
		"floor-member":     startFloor,
		"disk-writer":      startWriter,
	}
}

// play runs a process in its role until its standard input ends.
func play(ctx context.Context, start func(context.Context, []string) (member, string, error), args []string) error {
	// An interrupt reaches the whole group of processes. What to do about it is
	// for the one that gives the orders to decide.
	signal.Ignore(os.Interrupt)
	m, info, err := start(ctx, args)
	if err != nil {
		return tellError(os.Stdout, err)
	}
	err = obeyAll(ctx, m, info, os.Stdin, os.Stdout)
	return errors.Join(err, m.close())
}

func tellError(out io.Writer, err error) error {
	return json.NewEncoder(out).Encode(answer{Error: err.Error()})
}

// obeyAll says that the member is ready, and then answers each order until there
// are no more.
func obeyAll(ctx context.Context, m member, info string, in io.Reader, out io.Writer) error {
	answers := json.NewEncoder(out)
	if err := answers.Encode(answer{Info: info}); err != nil {
		return err
	}
	orders := bufio.NewScanner(in)
	for orders.Scan() {
		var o order
		if err := json.Unmarshal(orders.Bytes(), &o); err != nil {
			return fmt.Errorf("an order that is not understood: %w", err)
		}
		a, err := m.obey(ctx, o)
		if err != nil {
			a = answer{Error: err.Error()}
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
	return orders.Err()
}

// The orders. Each role knows some of them.
const (
	orderAcquire = "acquire" // a batch of leases
	orderRelease = "release" // what was acquired
	orderCPU     = "cpu"     // says what was used so far
	orderWrite   = "write"   // keeps the disk busy, until told to rest
	orderRest    = "rest"
)

func unknownOrder(o order) error {
	return fmt.Errorf("an order %q that this member does not know", o.Do)
}
