// Package jobs executes each run in a Job with one Pod, which the cluster schedules and Kueue may
// queue. The Pod has no permissions in the cluster. Its Secret holds only the credentials for its
// connection to this manager. Inputs and cloud credentials go over that connection (package
// remote).
//
// No decision is based on a Job. If a Job is gone before its run has ended, the run was killed.
package jobs
