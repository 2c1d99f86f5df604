package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A process is a manager in a process of its own.
type process struct {
	addr, http string
	cmd        *exec.Cmd
	dir        string
	conn       *grpc.ClientConn
	admin      leaseholdv1.AdminServiceClient
}

// startManager builds the command and runs a manager, with a namespace.
func startManager(ctx context.Context) (p *process, err error) {
	p = &process{}
	if p.dir, err = os.MkdirTemp("", "leasehold-capacity-*"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	program := filepath.Join(p.dir, "leasehold")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/leasehold")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building the command, from the root of the repository: %w", err)
	}
	if p.addr, err = freeAddr(); err != nil {
		return nil, err
	}
	if p.http, err = freeAddr(); err != nil {
		return nil, err
	}
	p.cmd = exec.Command(program, "manager", "--listen", p.addr, "--http", p.http, "--data-dir", filepath.Join(p.dir, "data"), "--log-level", "error")
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if p.conn, err = grpc.NewClient("passthrough:///"+p.addr, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...); err != nil {
		return nil, err
	}
	p.admin = leaseholdv1.NewAdminServiceClient(p.conn)
	err = p.create(ctx)
	return p, err
}

// freeAddr returns an address that nobody listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

const patience = 2 * time.Minute

// create makes the namespace, as soon as the manager leads.
func (p *process) create(ctx context.Context) error {
	return until(ctx, func() error {
		_, err := p.admin.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{Name: string(namespace)}})
		return err
	})
}

// settled waits until all owners are there, and every key has one if there are any.
func (p *process) settled(ctx context.Context, owners int) error {
	return until(ctx, func() error {
		s, err := p.admin.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		if err != nil {
			return err
		}
		for _, n := range s.GetNamespaces() {
			if n.GetName() == string(namespace) && n.GetOwners() == uint32(owners) && (owners == 0 || n.GetVacant() == 0) {
				return nil
			}
		}
		return errors.New("some keys have no owner")
	})
}

// until tries again and again.
func until(ctx context.Context, so func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := so()
		if err == nil {
			return nil
		}
		if pause(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// usage is what the process uses: bytes of memory, and seconds of a core so far.
type usage struct{ memory, cpu float64 }

// usage asks the manager's metrics.
func (p *process) usage(ctx context.Context) (out usage, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.http+"/metrics", nil)
	if err != nil {
		return out, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return out, err
	}
	defer answer.Body.Close() //nolint:errcheck // it has been read
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case name == "process_resident_memory_bytes":
			out.memory = n
		case name == "process_cpu_seconds_total":
			out.cpu = n
		}
	}
	if out.memory == 0 || out.cpu == 0 {
		return out, errors.Join(lines.Err(), errors.New("the manager does not say what it uses"))
	}
	return out, lines.Err()
}

func (p *process) stop() {
	if p.conn != nil {
		_ = p.conn.Close()
	}
	if p.cmd != nil && p.cmd.Process != nil {
		_ = p.cmd.Process.Signal(os.Interrupt)
		_ = p.cmd.Wait()
	}
	_ = os.RemoveAll(p.dir)
}
