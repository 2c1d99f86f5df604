package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/proc"
	"github.com/leasehold-dev/leasehold/server/supervisor"
)

// A devRun is a running leasehold dev.
type devRun struct {
	cmd     *exec.Cmd
	lines   *bufio.Scanner
	text    strings.Builder // the output so far
	gateway string
}

func startDev(t *testing.T, args ...string) (*devRun, string) {
	t.Helper()
	addrs, err := proc.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	all := append([]string{"dev", "--listen", addrs[0], "--http", addrs[1], "--gateway", addrs[2]}, args...)
	d := &devRun{cmd: exec.Command("leasehold", all...), gateway: "http://" + addrs[2]}
	d.cmd.Env = append(os.Environ(), "TMPDIR="+dir, "NO_COLOR=1")
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.cmd.Stderr = os.Stderr
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.cmd.Process.Kill() })
	d.lines = bufio.NewScanner(out)
	d.waitFor(t, "Ctrl-C")
	return d, dir
}

// waitFor reads the output up to a line that contains a text.
func (d *devRun) waitFor(t *testing.T, text string) {
	t.Helper()
	for d.lines.Scan() {
		d.text.WriteString(d.lines.Text() + "\n")
		if strings.Contains(d.lines.Text(), text) {
			return
		}
	}
	t.Fatalf("the output ended without %q:\n%s", text, &d.text)
}

// end sends an interrupt, as Ctrl-C does.
func (d *devRun) end(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for d.lines.Scan() {
		d.text.WriteString(d.lines.Text() + "\n")
	}
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("leasehold dev ended with %v:\n%s", err, &d.text)
	}
}

func (d *devRun) request(t *testing.T, method, body string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var got string
	err := proc.Until(ctx, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, method, d.gateway+"/status/alice", strings.NewReader(body))
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close() //nolint:errcheck // it was only read
		text, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = &http.ProtocolError{ErrorString: answer.Status}
		}
		got = string(text)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v; %q", method, err, got)
	}
	return got
}

// The example serves requests over the gateway, also after the crash of a server, and leaves no process or file.
func TestDevWithExample(t *testing.T) {
	d, dir := startDev(t, "--with-example")
	d.request(t, http.MethodPut, "at lunch")
	if got := d.request(t, http.MethodGet, ""); got != "at lunch" {
		t.Errorf("the status is %q", got)
	}
	pid := regexp.MustCompile(`server-2 .* process (\d+)`).FindStringSubmatch(d.text.String())
	if pid == nil {
		t.Fatalf("no server-2 in\n%s", &d.text)
	}
	n, err := strconv.Atoi(pid[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.waitFor(t, "server-2 has ended")
	if supervisor.Supported && !strings.Contains(d.text.String(), "within milliseconds, and") {
		t.Errorf("the servers are not supervised:\n%s", &d.text)
	}
	d.request(t, http.MethodPut, "back")
	d.end(t)
	waitForNoProcesses(t, dir)
	noFiles(t, dir)
}

// Without the example, dev runs a manager and a gateway, and a data directory is kept for the next run.
func TestDevKeepsData(t *testing.T) {
	data := t.TempDir()
	for range 2 {
		d, _ := startDev(t, "--data-dir", data, "-n", "sessions", "--key", "header:X-User")
		for _, want := range []string{"namespace sessions, key header:X-User", data + ", kept", "a server of yours in namespace sessions, with manager 127.0.0.1:"} {
			if !strings.Contains(d.text.String(), want) {
				t.Errorf("no %q in\n%s", want, &d.text)
			}
		}
		d.end(t)
	}
}

// An address in use is rejected before a process starts.
func TestDevRejectsAddressInUse(t *testing.T) {
	d, _ := startDev(t)
	if want := "go run ./examples/presence 127.0.0.1:8001"; !strings.Contains(d.text.String(), want) {
		t.Errorf("no %q in\n%s", want, &d.text)
	}
	second := exec.Command("leasehold", "dev", "--listen", "127.0.0.1:0")
	if out, err := second.CombinedOutput(); err == nil || !strings.Contains(string(out), "--listen") {
		t.Errorf("port 0: %v, %s", err, out)
	}
	second = exec.Command("leasehold", d.cmd.Args[1:]...)
	out, err := second.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "address already in use") || !strings.Contains(string(out), "--listen") {
		t.Errorf("address in use: %v, output\n%s", err, out)
	}
	d.end(t)
}
