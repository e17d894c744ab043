package observe

// The operator's labels on state Secrets and kubemark Nodes; see docs/contracts/state.md.
const (
	RoleLabel        = "machine-iac.io/state"
	UIDLabel         = "machine-iac.io/machine-uid"
	LockAnnotation   = "machine-iac.io/lock"
	IntentAnnotation = "machine-iac.io/intent"
	OwnerAnnotation  = "machine-iac.io/machine"
)
