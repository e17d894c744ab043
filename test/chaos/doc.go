// Package chaos plays rounds of faults against the built manager on a development cluster. A round is drawn from a seed: MachineSets on
// simulated Nodes by OpenTofu and by Pulumi and on a simulated OpenStack, what people do to them, and the faults that come meanwhile. When all is healed and
// at rest, what is there is compared with what should be; then everything is deleted, and nothing may be left.
//
//	make chaos                             # the rounds that CI plays
//	make chaos ROUNDS=500 WRITE=1          # the published run: its table is written to docs/reliability.md
//	make chaos ROUNDS=1 SEED=17            # one round again
//	make chaos ROUNDS=1 FAULTS=engine      # one fault, or several joined by commas, in every round; "none" for no fault
//	make chaos ROUNDS=1 VERBOSE=1          # each step, and what the round waits for
//
//	make chaos AWAY=60 PATIENCE=300 LEASE=20
//	make chaos ROUNDS=500 MINUTES=120      # as many as begin within two hours
//	make chaos ROUNDS=500 RECORD=/tmp/run  # the results are kept in a file; seeds that have passed in an earlier run are not played again
//
// LANES is how many clusters are played on at a time. An interrupt ends the rounds and cleans up.
//
// Steps come at the same times when a seed is played again; what they meet depends on how fast the machine is.
package chaos
