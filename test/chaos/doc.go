// Package chaos plays rounds of faults against the built manager on a development cluster. A seed determines a round:
// MachineSets on simulated Nodes (OpenTofu and Pulumi) and on a simulated OpenStack, users' actions, and faults. When
// everything has recovered and settled, the round compares the cluster with the expected state; then it deletes
// everything, and nothing may be left.
//
//	make chaos                             # the rounds that CI plays
//	make chaos ROUNDS=500 WRITE=1          # the published run: writes its table to docs/reliability.md
//	make chaos ROUNDS=1 SEED=17            # repeat one round
//	make chaos ROUNDS=1 FAULTS=engine      # faults of every round, separated by commas; "none" for none
//	make chaos ROUNDS=1 VERBOSE=1          # print each step, and what the round waits for
//
//	make chaos AWAY=60 PATIENCE=300 LEASE=20
//	make chaos ROUNDS=500 MINUTES=120      # as many as start within two hours
//	make chaos ROUNDS=500 RECORD=/tmp/run  # keep results in a file; skips seeds that passed in an earlier run
//
// LANES is the number of clusters that play rounds in parallel. An interrupt ends the rounds and cleans up.
//
// A seed repeats the schedule of its steps. What they meet depends on the machine's speed.
package chaos
