// Package pulumi drives one Pulumi CLI through the Automation API. It knows nothing about
// Kubernetes and makes no decisions about Machines. It creates a folder for a run with a `file://`
// backend and a checkpoint, starts the CLI, passes on each checkpoint that the CLI writes, and
// converts its events into an engine.Report.
//
// The terms, in the order of use:
//
//   - [Binary]: the CLI, found and checked once by [Find].
//   - [Engine]: the CLI together with a private work folder.
//   - program: what Pulumi runs, a folder with Pulumi.yaml.
//   - run: one use of a program. [Engine.Open] waits for a slot and creates its [Workspace], which
//     has the program, the configuration, files and the checkpoint. [Workspace.Close] removes it;
//     [Workspace.Keep] leaves it for the next engine, whose [Engine.AbandonedRuns] lists it.
//   - checkpoint: the state of a program, as Pulumi writes it. [Adopt] and [Rekey] change it.
//   - [Key]: encrypts the secrets in a checkpoint.
//
// The CLI runs only for a preview, an update and a destroy; other calls of the Automation API are
// answered from the folder. When its context ends, the CLI is interrupted. It is killed only if it
// has not exited after [Options.WaitDelay].
//
// The CLI reports through a pipe, and each checkpoint that it writes is saved when the kernel
// reports it. Both end with the CLI. docs/adr/0004-one-actuator-two-engines.md explains why.
package pulumi
