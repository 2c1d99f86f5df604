package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/child"
	"github.com/leasehold-dev/leasehold/owner"
)

const (
	namespace leasehold.Namespace = "availability"
	// word is how this program is told to be a rack.
	word = "be-a-rack"
)

// A rack is servers that live and die together: one process, with the library's
// owners in it.
type rack struct{ child.Child }

// newRack prepares a rack. It tells of itself when all of its servers have joined.
func newRack(dir, name string, managers []string, servers int, joined func()) (*rack, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &rack{child.Child{
		Name: name, Ended: func(err error) { fmt.Fprintln(os.Stderr, err) },
		Launch: child.Launch{
			Program: self, Args: []string{word, name, strconv.Itoa(servers), strings.Join(managers, ",")}, Log: filepath.Join(dir, name+".log"),
			Output: func(r io.Reader) error {
				if n, _ := io.ReadFull(r, make([]byte, 1)); n == 1 {
					joined()
				}
				_, err := io.Copy(io.Discard, r)
				return err
			},
		},
	}}, nil
}

// beRack makes this process a rack if it was started as one, and does not return
// then.
func beRack() {
	if len(os.Args) != 5 || os.Args[1] != word {
		return
	}
	go child.EndWithParent(os.Stdin)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := serveRack(ctx, os.Args[2], os.Args[3], strings.Split(os.Args[4], ","))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serveRack serves until it is told to end, and then gives all keys back first.
func serveRack(ctx context.Context, name, count string, managers []string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	servers, errs := make([]*server, n), make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { servers[i], errs[i] = join(ctx, fmt.Sprintf("%s-%d", name, i+1), managers) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Print("!")
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for i, s := range servers {
		group.Go(func() { errs[i] = s.owner.Close(closing) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// A server answers for the keys that it owns.
type server struct{ owner *owner.Owner }

func join(ctx context.Context, name string, managers []string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{}
	s.owner, err = owner.Join(ctx, owner.Config{
		Namespace: namespace, Managers: managers, Name: leasehold.OwnerID(name), Addr: l.Addr().String(),
	})
	if err != nil {
		return nil, err
	}
	service := rpc.NewServer()
	if err := service.RegisterName("Server", &Service{s.owner}); err != nil {
		return nil, err
	}
	go service.Accept(l)
	return s, nil
}

// Service is what callers call.
type Service struct{ owner *owner.Owner }

// Serve says whether the server owns a key.
func (s *Service) Serve(key uint64, owned *bool) error {
	_, *owned = s.owner.Check(leasehold.Key(key))
	return nil
}
