// Package lifecycle decides what is done about a Machine. It is pure: it reads and writes nothing.
//
// [Facts] are what a decision is made from: the Machine, what its state Secret records ([record.Record]), and the run that the pool holds for it.
// [Decide] compares them with a [Target], the desired state in brief, and returns a [Decision]. [CheckPlan] says whether the plan of a run may
// be applied, [CompareInstance] what a drift check has found, and [Schedule] when the next one is due. docs/architecture.md has the table of
// decisions.
package lifecycle
