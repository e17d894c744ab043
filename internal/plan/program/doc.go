// Package program plans stacks: Pulumi previews their programs offline, against an empty checkpoint, with the inputs and outcomes of package
// offline. Only programs in YAML can be planned, because they can be read and changed:
//
//   - Pulumi's bridge finds a stub binary in its mirror for each Terraform provider, which leads it to a stub provider.
//   - What a program repeats is written out, as for a run.
//   - Functions that a program calls, and resources that it reads, are replaced by unknown values.
//   - References to unknown variables lead to a resource that is yet to be created. What is known stays configuration, hence data.
//
// Each input takes a process of its own.
package program
