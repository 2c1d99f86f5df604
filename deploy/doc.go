// Package deploy has no code. Its directories have what a deployment of Leasehold takes
// besides the binary: prometheus/alerts.yml and grafana/leasehold.json. Its tests hold
// those against the metrics of a cluster that runs, and against docs/operations/alerts.md.
package deploy
