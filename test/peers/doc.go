// Package peers runs unmodified programs of OpenShift beside the built manager on a development cluster:
//
//	make peers PEERS=DIR    # DIR has the programs by their names; a story without its program is skipped
//
// README.md has the outcome.
package peers
