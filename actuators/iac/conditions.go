package iac

// Conditions in the provider status, beside that of reporting.
const (
	// moduleCurrent says whether the instance was made with the module as it is now.
	moduleCurrent = "ModuleCurrent"
	// adoptedCondition says whether an instance that something else has made is adopted.
	adoptedCondition = "Adopted"
	// outlivesMachine names what stays when the Machine is deleted.
	outlivesMachine = "OutlivesMachine"
)
