// Package e2egardener tests Gardener's machine-controller-manager (MCM) with this project's driver, on two development
// clusters: one with the Machines, one with the Nodes. MCM, the driver and the manager are the built programs, with the
// rights of the install trees.
//
//	make e2e-gardener
//
// It runs MCM's own integration suite, which every Gardener provider passes, and then covers what that suite omits.
package e2egardener
