package cast

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// A Member is what a process does in its role.
type Member interface {
	// Obey carries an order out.
	Obey(ctx context.Context, o Order) (Answer, error)
	// Close ends what the member started, and waits for it.
	Close() error
}

// A Start starts a member. What it says of itself goes to the one who gives the
// orders.
type Start func(ctx context.Context, args []string) (m Member, info string, err error)

// LockServices are the roles of etcd and ZooKeeper.
func LockServices() map[string]Start {
	return map[string]Start{"etcd-member": startEtcd, "zookeeper-member": startZooKeeper}
}

// Play plays a role if the command line of this process names one: then it does
// not return. A main function, or that of a test, begins with it.
func Play(roles map[string]Start) {
	if len(os.Args) < 2 || roles[os.Args[1]] == nil {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := 0
	if err := play(ctx, roles[os.Args[1]], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	stop()
	os.Exit(code)
}

// play runs a process in its role until its standard input ends.
func play(ctx context.Context, start Start, args []string) error {
	// An interrupt reaches the whole group of processes. What to do about it is
	// for the one that gives the orders to decide.
	signal.Ignore(os.Interrupt)
	m, info, err := start(ctx, args)
	if err != nil {
		return tellError(os.Stdout, err)
	}
	err = obeyAll(ctx, m, info, os.Stdin, os.Stdout)
	return errors.Join(err, m.Close())
}

func tellError(out io.Writer, err error) error {
	return json.NewEncoder(out).Encode(Answer{Error: err.Error()})
}

// obeyAll says that the member is ready, and then answers each order until there
// are no more.
func obeyAll(ctx context.Context, m Member, info string, in io.Reader, out io.Writer) error {
	answers := json.NewEncoder(out)
	if err := answers.Encode(Answer{Info: info}); err != nil {
		return err
	}
	orders := bufio.NewScanner(in)
	for orders.Scan() {
		var o Order
		if err := json.Unmarshal(orders.Bytes(), &o); err != nil {
			return fmt.Errorf("an order that is not understood: %w", err)
		}
		a, err := m.Obey(ctx, o)
		if err != nil {
			a = Answer{Error: err.Error()}
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
	return orders.Err()
}

// OrderCPU asks a member what it has used so far. All lock services know it.
const OrderCPU = "cpu"

// UnknownOrder is what a member says to an order that is not for it.
func UnknownOrder(o Order) error {
	return fmt.Errorf("an order %q that this member does not know", o.Do)
}
