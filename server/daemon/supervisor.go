package daemon

import (
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Ready tells systemd, if that started us with Type=notify, that we serve. What is returned
// tells it that we stop; what stops may take its time, and is not to be taken for dead.
func Ready(log *slog.Logger, state string) (stopping func()) {
	notify(log, daemon.SdNotifyReady+"\nSTATUS="+state)
	return func() { notify(log, daemon.SdNotifyStopping) }
}

func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd cannot be told how we are", "why", err)
	}
}
