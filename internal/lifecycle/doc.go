// Package lifecycle decides what to do about a Machine. It is pure: it reads and writes nothing.
//
// [Facts] are the input: the Machine, the record in its state Secret ([record.Record]), and the run
// that the pool holds for it. [Decide] compares them with a [Target], the desired state in brief,
// and returns a [Decision].
//
// [CheckPlan] decides whether a plan may be applied, [CompareInstance] evaluates a drift check, and
// [Schedule] says when the next one is due. docs/architecture.md has the table of decisions.
package lifecycle
