// Package jobs carries runs out in Jobs: one Pod for each, which the cluster schedules and Kueue may queue. The Pod has no rights on the cluster.
// Its Secret has what it connects to this manager with, and nothing else; inputs and credentials go over that connection (package remote).
//
// A Job is never the source of a decision. One that is gone before its run has ended is a run that was killed.
package jobs
