// Package pulumi drives one Pulumi CLI through the Automation API. It knows no Kubernetes and decides nothing about Machines: it makes a
// folder for a run with a `file://` backend in it, writes a checkpoint there, starts the CLI, passes on each checkpoint that the CLI
// writes, and reads its events into an engine.Report.
//
// The terms, in the order in which they are used:
//
//   - [Binary]: the CLI, found and checked once by [Find].
//   - [Engine]: the CLI together with a private work folder.
//   - program: what Pulumi runs, a folder with Pulumi.yaml.
//   - run: one use of a program. [Engine.Open] waits for a slot and makes its [Workspace], which has the program, the configuration, files and
//     the checkpoint. [Workspace.Close] removes it; [Workspace.Keep] leaves it for the next engine, whose [Engine.AbandonedRuns] it is among.
//   - checkpoint: the state of a program, as Pulumi writes it. See [Adopt] and [Rekey] for the changes that are made here.
//   - [Key]: what secrets in a checkpoint are encrypted with.
//
// No CLI is started but for a preview, an update and a destroy: other calls of the Automation API are served from the folder. The
// CLI is interrupted, not killed, when its context ends; it is killed only when it has not ended after [Options.WaitDelay].
//
// What the CLI reports comes through a pipe, each checkpoint that it writes is saved when the kernel reports it, and both end with the CLI.
// docs/adr/0004-one-actuator-two-engines.md says why it is so.
package pulumi
