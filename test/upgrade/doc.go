// Package upgrade tests what happens to Machines while the operator goes from one release to the next, on a development cluster, with the built
// programs: a hundred Machines are Running and five are being made.
//
//	make e2e-upgrade                              # from this release to itself, under another version
//	UPGRADE_FROM=v0.1.0 make e2e-upgrade          # from another release: any commit that this repository has
//
// Without UPGRADE_FROM the programs are the same before and after, since a clone need not have another commit: what is tested then is the way of an
// upgrade, the rollout, the change of the leader and that nothing is done to Machines. That this release reads what another has written is
// tested with UPGRADE_FROM.
package upgrade
