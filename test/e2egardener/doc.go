// Package e2egardener tests Gardener's machine-controller-manager (MCM) with this project's driver, on two development clusters: Machines in the
// one, Nodes in the other. MCM, the driver and the manager are the built programs, with the rights of the install trees.
//
//	make e2e-gardener
//
// First MCM's own integration suite is run, which every provider of Gardener passes, and then what it leaves out.
package e2egardener
