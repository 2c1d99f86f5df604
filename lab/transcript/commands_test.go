package transcript

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	ownermachine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

var errUsage = errors.New("unknown command: see doc.go")

// command executes one line.
func (w *world) command(words []string) error {
	verb, args := words[0], words[1:]
	switch verb {
	case "begin":
		w.begin()
		return nil
	case "keys", "timing", "plan", "generations", "draws", "clock", "without":
		return w.setting(verb, args)
	case "manager", "owner", "lookup", "crash", "restart", "sleep", "leave", "part", "prove", "resign", "rethink", "configure":
		return w.processCommand(verb, args)
	case "drain", "undrain", "move":
		return w.order(verb, args)
	case "copied", "installed", "fails", "gives":
		return w.moveCommand(verb, args)
	case "advance", "run", "settle":
		return w.timeCommand(verb, args)
	case "deliver", "drop", "hold", "release", "cut", "heal", "commit", "timeout":
		return w.messageCommand(verb, args)
	case "check", "held", "find", "show", "write", "read":
		return w.question(verb, args)
	}
	return errUsage
}

// setting executes the commands for the settings of the world.
func (w *world) setting(verb string, args []string) error {
	switch {
	case verb == "keys" && len(args) == 1:
		n, err := strconv.ParseUint(args[0], 10, 8)
		w.units = n
		return err
	case verb == "timing":
		return w.setTiming(args)
	case verb == "plan":
		return w.setPlan(args)
	case verb == "generations" && len(args) == 2 && args[0] == "from":
		g, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return err
		}
		return w.store.startFrom(leasehold.Generation(g))
	case verb == "without" && len(args) == 1 && args[0] == "filter":
		w.unfiltered = true
		return nil
	case len(args) != 2:
		return errUsage
	}
	p, err := w.process(args[0])
	if err != nil {
		return err
	}
	f := 0.0
	err = setFloat(&f, args[1])
	h := p.self()
	if verb == "draws" {
		h.dice.next = newDice(f).next
	} else {
		h.clock = clock{h.local(), w.now, f}
	}
	return err
}

func (w *world) setTiming(args []string) error {
	if len(args) == 1 && args[0] == "paper" {
		w.timing = protocol.PaperTiming()
		return nil
	}
	options := optionsOf(args)
	if err := setDuration(&w.timing.Lease, options["lease"]); err != nil {
		return err
	}
	if err := setDuration(&w.timing.Renew, options["renew"]); err != nil {
		return err
	}
	if err := setFloat((*float64)(&w.timing.Drift), options["drift"]); err != nil {
		return err
	}
	return w.timing.Validate()
}

func (w *world) setPlan(args []string) error {
	w.policy.plan = []planned{}
	for _, arg := range args {
		name, spans, _ := strings.Cut(arg, "=")
		for span := range strings.SplitSeq(spans, ",") {
			p := planned{owner: leasehold.OwnerID(name)}
			if _, err := fmt.Sscanf(span, "%d-%d", &p.lo, &p.hi); err != nil {
				return err
			}
			w.policy.plan = append(w.policy.plan, p)
		}
	}
	return nil
}

// processCommand executes the commands for a process.
func (w *world) processCommand(verb string, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	name, options := args[0], optionsOf(args[1:])
	switch verb {
	case "manager":
		return w.start(&manager{}, name, 0.5, options)
	case "owner":
		return w.start(&owner{}, name, 0, options)
	case "lookup":
		return w.start(&lookup{id: uint64(len(w.processes))}, name, 0, options)
	}
	p, err := w.process(name)
	if err != nil {
		return err
	}
	h := p.self()
	if !h.alive && verb != "restart" {
		return fmt.Errorf("%s is down", name)
	}
	switch verb {
	case "crash":
		h.alive = false
		return nil
	case "restart":
		return w.boot(p, options)
	case "sleep":
		if len(args) != 2 {
			return errUsage
		}
		d, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		return w.sleep(p, d)
	}
	switch p := p.(type) {
	case *manager:
		if verb == "configure" {
			return p.configure(args[1:])
		}
		return p.managerCommand(verb)
	case *owner:
		return p.ownerCommand(verb)
	}
	return errUsage
}

func (m *manager) managerCommand(verb string) error {
	switch {
	case verb == "resign":
		m.step(managerproc.Election{Event: byrecord.Resign{}})
	case verb == "rethink" && m.node.Manager(namespace) != nil:
		m.rethink()
	default:
		return errUsage
	}
	return nil
}

// configure changes the timing in the store, if the manager leads, and then sends the manager the new
// catalog.
func (m *manager) configure(args []string) error {
	term := m.node.Term()
	if err := m.setTiming(args); err != nil || term == 0 {
		return errors.Join(err, errUsage)
	}
	m.store.configure(m.timing)
	n := m.store.catalog.Find(namespace)
	m.say("the store has the lease duration %s", seconds(n.Lease))
	if n.Promised > 0 {
		m.then("and the promise to wait %s for longer leases", seconds(n.Promised))
	}
	m.step(m.store.atOnce(m.name, storeRequest{term: term, what: managerproc.LoadCatalog{Term: term}}))
	return nil
}

func (o *owner) ownerCommand(verb string) error {
	switch {
	case verb == "leave":
		o.step(ownermachine.Leave{})
	case verb == "part":
		o.step(ownermachine.Part{})
	case verb == "prove" && o.asked != nil:
		o.step(ownermachine.PredecessorGone{Session: o.asked.Session})
	default:
		return errUsage
	}
	o.audit()
	return nil
}

// sleep stops a process's clock while true time passes. Events of other processes in between, on a perfect
// network, are not printed.
func (w *world) sleep(p process, d time.Duration) error {
	h := p.self()
	h.asleep = true
	shown := h.local()
	if err := w.advance(d, w.deliverAll); err != nil {
		return err
	}
	w.out.Reset()
	h.asleep = false
	h.clock = clock{shown, w.now, h.clock.rate}
	w.say("%s wakes up", h.name)
	p.slept()
	w.audit()
	return nil
}

func (w *world) timeCommand(verb string, args []string) error {
	if verb == "settle" {
		return w.deliverAll()
	}
	if len(args) != 1 {
		return errUsage
	}
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	if verb == "advance" {
		return w.advance(d, func() error { return nil })
	}
	if err := w.deliverAll(); err != nil {
		return err
	}
	return w.advance(d, w.deliverAll)
}

// messageCommand executes the commands for messages.
func (w *world) messageCommand(verb string, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	last := len(args) == 2 && args[1] == "last"
	switch verb {
	case "hold", "release", "cut", "heal":
		for _, link := range args {
			if verb == "hold" || verb == "release" {
				w.held[link] = verb == "hold"
			} else {
				w.cut[link] = verb == "cut"
			}
		}
		return nil
	case "commit":
		for _, link := range []string{args[0] + "->" + storeName, storeName + "->" + args[0]} {
			m := w.pick(link, false)
			if m == nil {
				return fmt.Errorf("no message is in flight from %s", link)
			}
			w.deliver(m)
		}
		return nil
	case "timeout":
		return w.timeout(args[0])
	}
	m := w.pick(args[0], last)
	if m == nil {
		return fmt.Errorf("no message is in flight from %s", args[0])
	}
	if verb == "deliver" {
		w.deliver(m)
	} else {
		w.lose(m)
	}
	return nil
}

// timeout makes a manager's request to the store time out.
func (w *world) timeout(name string) error {
	p, err := w.process(name)
	if err != nil {
		return err
	}
	for _, m := range w.underWay {
		if m.vain != nil && !m.abandoned && (m.from == name || m.to == name) {
			m.abandoned = true
			w.say("%s times out: %s", name, w.quote(m))
			p.receive(storeName, m.vain)
			w.audit()
			return nil
		}
	}
	return fmt.Errorf("%s waits for no reply", name)
}

func (w *world) process(name string) (process, error) {
	if p := w.find(name); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("there is no %s", name)
}

// keyOf parses the number of a unit, and returns its first key.
func (w *world) keyOf(unit string) (leasehold.Key, error) {
	u, err := strconv.ParseUint(unit, 10, 64)
	if err == nil && u >= w.units {
		err = fmt.Errorf("only %d units exist", w.units)
	}
	return w.key(u), err
}

// optionsOf parses key=value, and "named X" as named=X.
func optionsOf(args []string) map[string]string {
	options := map[string]string{}
	for i, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok && i+1 < len(args) {
			value = args[i+1]
		}
		options[key] = value
	}
	return options
}

func setRate(h *host, options map[string]string) error {
	rate := h.clock.rate
	err := setFloat(&rate, options["clock"])
	h.clock = clock{h.local(), h.now, rate}
	return err
}

// setFloat parses a number, or a fraction such as 65/60.
func setFloat(to *float64, text string) error {
	if text == "" {
		return nil
	}
	over, under, isFraction := strings.Cut(text, "/")
	if !isFraction {
		under = "1"
	}
	a, err := strconv.ParseFloat(over, 64)
	if err != nil {
		return err
	}
	b, err := strconv.ParseFloat(under, 64)
	*to = a / b
	return err
}

func setInt(to *int, text string) (err error) {
	if text != "" {
		*to, err = strconv.Atoi(text)
	}
	return err
}

func setDuration(to *time.Duration, text string) (err error) {
	if text != "" {
		*to, err = time.ParseDuration(text)
	}
	return err
}
