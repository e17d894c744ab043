package observe

// What the operator writes on the Secrets of states, and on the Nodes of kubemark; docs/contracts/state.md has them all.
const (
	RoleLabel        = "machine-iac.io/state"
	UIDLabel         = "machine-iac.io/machine-uid"
	LockAnnotation   = "machine-iac.io/lock"
	IntentAnnotation = "machine-iac.io/intent"
	OwnerAnnotation  = "machine-iac.io/machine"
)
