// Package upgrade tests Machines during an upgrade of the operator on a development cluster, with the built programs,
// while a hundred Machines are Running and five are being created.
//
//	make e2e-upgrade                              # from this release to itself, under another version
//	UPGRADE_FROM=v0.1.0 make e2e-upgrade          # from another release: any commit in this repository
//
// Without UPGRADE_FROM the programs are identical, because a shallow clone has no other commit: this tests the rollout,
// the change of the leader, and that Machines stay untouched. Only UPGRADE_FROM tests that this release reads what
// another one wrote.
package upgrade
