// Package doctor examines a running cluster, managers, clocks, certificates, namespaces, owners and
// lookups, and says what to fix.
package doctor
