// Package deploy has no code. Its directories contain the files of a deployment besides the
// binary: container image, Kubernetes, systemd, Prometheus alerts and a Grafana dashboard. Its
// tests check alerts and dashboard against the metrics of a running cluster and against
// docs/OPERATIONS.md.
package deploy
