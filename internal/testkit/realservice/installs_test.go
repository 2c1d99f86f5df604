//go:build unix

package realservice

import (
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A machine runs the script with a fake apt-get. All but Redis are installed.
type machine struct {
	dir, bin string
	script   string // modified to use only the directory
	policy   string
	journal  string // one line per call of a fake program
}

func newMachine(t *testing.T, change programs) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{
		dir: dir, script: filepath.Join(dir, "install"), journal: filepath.Join(dir, "journal"),
		policy: dir + "/usr/sbin/policy-rc.d",
	}
	if err := os.MkdirAll(filepath.Dir(m.policy), 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("install")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/usr/sbin/policy-rc.d", "/etc/postgresql-common/", "/usr/lib/postgresql/"} {
		if strings.Count(string(text), path) != 1 {
			t.Fatalf("the script does not contain %s exactly once: this test could modify the system", path)
		}
		text = []byte(strings.Replace(string(text), path, dir+path, 1))
	}
	if err := os.WriteFile(m.script, text, 0o700); err != nil {
		t.Fatal(err)
	}
	all := programs{
		"ls": "", "date": "", "mktemp": "", "rm": "", "rmdir": "", "chmod": "", "mkdir": "", "grep": "", "tail": "",
		"flock": "", "timeout": "", "z3": "true", "initdb": "true", "chromium": "true", "id": "echo 0",
		"systemctl": `echo "systemctl $*" >>JOURNAL; [ "$1" = disable ]`,
		"apt-get":   `echo "apt-get" >>JOURNAL; POLICY; echo "policy $?" >>JOURNAL; echo '#!/bin/sh' >BIN/redis-server; chmod 700 BIN/redis-server`,
	}
	maps.Copy(all, change)
	bin := filepath.Join(dir, "bin")
	for name, text := range all {
		all[name] = strings.NewReplacer("JOURNAL", m.journal, "POLICY", m.policy, "BIN", bin).Replace(text)
	}
	if err := os.Rename(all.put(t), bin); err != nil {
		t.Fatal(err)
	}
	m.bin = bin
	return m
}

// run runs the script, and returns its output and error.
func (m *machine) run() (string, error) {
	out, err := m.command().CombinedOutput()
	return string(out), err
}

func (m *machine) command() *exec.Cmd {
	cmd := exec.Command(m.script)
	cmd.Env = []string{"PATH=" + m.bin, "TMPDIR=" + m.dir}
	return cmd
}

func (m *machine) wantJournal(t *testing.T, want string) {
	t.Helper()
	got, err := os.ReadFile(m.journal)
	if err != nil || string(got) != want {
		t.Errorf("calls (%v):\n%swant:\n%s", err, got, want)
	}
}

// wantTidy checks that the script has removed its temporary files.
func (m *machine) wantTidy(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(m.policy); err == nil {
		t.Error("the policy file remains")
	}
	if logs, _ := filepath.Glob(filepath.Join(m.dir, "tmp.*")); len(logs) > 0 { // the pattern is right
		t.Errorf("temporary files: %q", logs)
	}
}

const installed = "systemctl is-enabled redis-server\napt-get\npolicy 101\nsystemctl disable redis-server\n"

// Neither during nor after the installation services are started, and no concurrent installation is possible.
func TestInstalls(t *testing.T) {
	apt := `flock -n "${0%/*}/../usr/sbin" true && echo "not locked" >>JOURNAL
echo "apt-get" >>JOURNAL; POLICY; echo "policy $?" >>JOURNAL; echo '#!/bin/sh' >BIN/redis-server; chmod 700 BIN/redis-server`
	m := newMachine(t, programs{"apt-get": apt, "true": ""})
	if out, err := m.run(); err != nil || out != "installing for the tests: redis-server\n" {
		t.Errorf("%v, %q", err, out)
	}
	m.wantJournal(t, installed)
	m.wantTidy(t)
}

// An existing policy file is unchanged.
func TestInstallKeepsPolicy(t *testing.T) {
	m := newMachine(t, programs{"systemctl": `echo "systemctl $*" >>JOURNAL`})
	const theirs = "#!/bin/sh\nexit 104\n"
	if err := os.WriteFile(m.policy, []byte(theirs), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := m.run(); err != nil {
		t.Errorf("%v, %q", err, out)
	}
	m.wantJournal(t, "systemctl is-enabled redis-server\napt-get\npolicy 104\n")
	if got, err := os.ReadFile(m.policy); err != nil || string(got) != theirs {
		t.Errorf("policy %q (%v)", got, err)
	}
}

// A killed script leaves a policy file without effect, which the next run replaces.
func TestInstallKilled(t *testing.T) {
	m := newMachine(t, programs{"timeout": `kill -9 $PPID`})
	if out, err := m.run(); err == nil {
		t.Fatalf("the script was not killed; output %q", out)
	}
	if out, err := exec.Command(m.policy).CombinedOutput(); err != nil {
		t.Errorf("remaining policy: %v, %q", err, out)
	}
	next := newMachine(t, nil)
	if err := os.Rename(m.policy, next.policy); err != nil {
		t.Fatal(err)
	}
	if out, err := next.run(); err != nil {
		t.Errorf("%v, %q", err, out)
	}
	next.wantJournal(t, installed)
	next.wantTidy(t)
}

func TestInstallInterrupted(t *testing.T) {
	for name, number := range map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP} {
		if signal.Ignored(number) { // for example by nohup: a shell cannot change that
			continue
		}
		m := newMachine(t, programs{"timeout": `echo "timeout $1 $2 $3" >>JOURNAL; [ "$1" != --foreground ] || kill -` + name + ` $PPID`})
		if out, err := m.run(); err == nil {
			t.Errorf("%s: the script continued; output %q", name, out)
		}
		m.wantJournal(t, "systemctl is-enabled redis-server\ntimeout --foreground -k 10\ntimeout -k 10 60\n")
		m.wantTidy(t)
	}
}

// Ctrl-C, a signal to the process group, ends apt-get, too.
func TestInstallCtrlC(t *testing.T) {
	if signal.Ignored(syscall.SIGINT) {
		t.Skip("this process ignores Ctrl-C")
	}
	m := newMachine(t, programs{"apt-get": `echo >>BIN/started; read -r never <BIN/release`})
	started, release := filepath.Join(m.bin, "started"), filepath.Join(m.bin, "release")
	for _, pipe := range []string{started, release} {
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := m.command()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(started); err != nil { // it blocks until apt-get has started
		t.Fatal(err)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	timeout := time.AfterFunc(patience, func() { _ = os.WriteFile(release, nil, 0o600) }) // so that it ends
	if err := cmd.Wait(); err == nil || !timeout.Stop() {
		t.Errorf("the script ended with %v, want an interrupt at once", err)
	}
	m.wantTidy(t)
}

// The deadline applies to all attempts together.
func TestInstallDeadline(t *testing.T) {
	m := newMachine(t, programs{
		"date":    `read -r now <CLOCK; echo $((now + 125)) >CLOCK; echo "$now"`,
		"timeout": `[ "$1" != --foreground ] || echo "timeout $4" >>JOURNAL; exit 1`,
	})
	clock := filepath.Join(m.dir, "clock")
	date, err := os.ReadFile(filepath.Join(m.bin, "date"))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{clock: "1000\n", filepath.Join(m.bin, "date"): strings.ReplaceAll(string(date), "CLOCK", clock)} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	out, err := m.run()
	if err != nil || !strings.Contains(out, "(timeout after 300 s)") {
		t.Errorf("%v, %q", err, out)
	}
	m.wantJournal(t, "systemctl is-enabled redis-server\ntimeout 175\ntimeout 50\n")
	m.wantTidy(t)
}

// Runs are serialized by a lock: the second one waits, then checks again.
func TestInstallLocks(t *testing.T) {
	m := newMachine(t, programs{"flock": `echo "flock $*" >>JOURNAL; echo '#!/bin/sh' >BIN/redis-server; chmod 700 BIN/redis-server`})
	if out, err := m.run(); err != nil || strings.Contains(out, "NOT TESTED") {
		t.Errorf("%v, %q", err, out)
	}
	m.wantJournal(t, "flock -w 300 9\n")

	m = newMachine(t, programs{"flock": `echo "flock $*" >>JOURNAL; exit 1`})
	if out, err := m.run(); err != nil || !strings.Contains(out, "another installation has been running") {
		t.Errorf("%v, %q", err, out)
	}
	m.wantJournal(t, "flock -w 300 9\n")
	m.wantTidy(t)
}
