package supervisor_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/leasehold-dev/leasehold/internal/runtime/supervise"
)

// roles are the programs that are supervised.
func roles() map[string]func() error {
	all := map[string]func() error{
		"exit":      crash(func() { os.Exit(3) }),
		"panic":     crash(func() { panic("test") }),
		"killed":    crash(func() { kill(syscall.SIGKILL) }),
		"terminate": crash(func() { kill(syscall.SIGTERM) }),
		"quit":      crash(func() { kill(syscall.SIGQUIT) }),
		"fault":     crash(func() { kill(syscall.SIGSEGV) }),
		"leave":     leave,
		"daemon":    daemonize,
		"block":     block,
		"signals":   printSignals,
		"job":       printContinued,
		"orphan":    leaveOrphan,
		"files":     printFiles,
	}
	maps.Copy(all, joinRoles())
	maps.Copy(all, memoryRoles())
	return all
}

// crash registers sessions in two namespaces, and ends the process.
func crash(end func()) func() error {
	return func() error {
		err := register("presence", "sessions")
		if err == nil {
			end()
		}
		return err
	}
}

// kill ends this process by the default action of a signal, without the Go runtime.
func kill(s syscall.Signal) {
	script := fmt.Sprintf("ulimit -c 0; kill -%d $$", s)
	_ = syscall.Exec("/bin/sh", []string{"sh", "-c", script}, os.Environ())
}

func leave() error {
	if err := register("presence", "sessions"); err != nil {
		return err
	}
	c, err := supervise.Process()
	return errors.Join(err, c.Leave(sessionIn("presence")), c.Leave(sessionIn("sessions")))
}

// block prints its process ID, and waits for the end of the input.
func block() error {
	if err := register("presence"); err != nil {
		return err
	}
	fmt.Println(os.Getpid())
	_, err := io.Copy(io.Discard, os.Stdin)
	fmt.Println("end of input")
	return err
}

// daemonize leaves a program behind that has the input open.
func daemonize() error {
	if err := register("presence"); err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", "read x; echo daemon $x")
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

func printSignals() error {
	received := make(chan os.Signal, 100)
	signal.Notify(received, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP, syscall.Signal(37))
	fmt.Println(os.Getpid())
	for s := range received {
		fmt.Println(s)
		if s == syscall.SIGTERM {
			break
		}
	}
	return nil
}

// printContinued prints a line after each stop, until it is interrupted.
func printContinued() error {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	fmt.Println("started")
	for range continued {
		fmt.Println("continued")
	}
	return nil
}

// leaveOrphan starts a program in the background of one that ends, and waits until the orphan has been reaped.
func leaveOrphan() error {
	out, err := exec.Command("sh", "-c", "sh -c 'read x' <&3 >/dev/null 2>&1 3<&- & echo $!").Output()
	if err != nil {
		return err
	}
	pid := strings.TrimSpace(string(out))
	for range 1_000_000 {
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
			fmt.Println("reaped")
			return nil
		}
	}
	status, err := os.ReadFile("/proc/" + pid + "/status")
	return fmt.Errorf("orphan %s: %s, %w", pid, status, err)
}

// printFiles prints what descriptor 3 contains.
func printFiles() error {
	line, err := bufio.NewReader(os.NewFile(3, "")).ReadString('\n')
	fmt.Print(line)
	return errors.Join(err, register("presence"))
}
