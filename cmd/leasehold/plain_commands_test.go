package main

import (
	"strings"
	"testing"
)

// Every command rejects plaintext listeners and connections beyond the loopback interface without --insecure.
func TestPlaintextRequiresInsecure(t *testing.T) {
	for _, args := range []string{
		"manager run --print-config --listen 10.0.0.1:7400",
		"manager run --print-config --listen :7400 --advertise 127.0.0.1:7400",
		"manager run --print-config --http :7401",
		"manager run --print-config --http 10.0.0.1:7401",
		"manager run --print-config --peer-listen :7402 --join 127.0.0.1:7400",
		"manager run --print-config --peer-listen 127.0.0.1:7402 --join m1:7400",
		"manager run --print-config --name a --members a=127.0.0.1:7402,b=127.0.0.1:7403,c=10.0.0.1:7402",
		"manager run --print-config --store flease --peers 127.0.0.1:7400,127.0.0.1:7410,m3:7400",
		"manager run --print-config --etcd 127.0.0.1:2379,http://10.0.0.1:2379",
		"manager run --print-config --etcd 10.0.0.1:2379",
		"manager run --print-config --etcd http://10.0.0.1:2379 --etcd-ca main.go",
		"gateway --print-config -n x --key path:1 --listen :8080",
		"gateway --print-config -n x --key path:1 --health-listen :8081",
		"gateway --print-config -n x --key path:1 --managers 127.0.0.1:7400,m2:7400",
		"agent --listen :7404",
		"agent --managers m1:7400",
		"status --managers m1:7400",
		"owner drain a -n x --managers 127.0.0.1:7400,10.0.0.1:7400",
		"doctor --managers m1:7400",
		"events --follow --managers m1:7400",
		"top --managers m1:7400",
	} {
		var out, errs strings.Builder
		got := run(t.Context(), strings.Fields(args), &out, &errs)
		if got != 2 || !strings.Contains(errs.String(), "pass --insecure if the network is trusted") {
			t.Errorf("%s: status %d, %s", args, got, errs.String())
		}
	}
	for _, args := range []string{
		"--name a --members a=127.0.0.1:7402,b=https://m2:7402,c=m3:7402 --listen :7400 --advertise m1:7400 --join= --tls-dir pki --access access.yaml",
		"--etcd https://10.0.0.1:2379",
		"--etcd 10.0.0.1:2379 --etcd-ca main.go",
		"--listen :7400 --advertise m1:7400 --http :7401 --insecure",
	} {
		var out, errs strings.Builder
		got := run(t.Context(), strings.Fields("manager run --print-config "+args), &out, &errs)
		if got != 0 {
			t.Errorf("%s: status %d, %s", args, got, errs.String())
		}
	}
}
