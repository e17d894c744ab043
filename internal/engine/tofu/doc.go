// Package tofu drives one OpenTofu or Terraform CLI through terraform-exec. It knows no Kubernetes and decides nothing about
// Machines: it makes a folder for a run, starts the engine in it, reads the engine's -json stream into a [Report], and
// classifies errors.
//
// The terms, in the order in which they are used:
//
//   - [Binary]: the CLI, found and checked once by [Find].
//   - [Engine]: the CLI together with a private work folder, of which there is one owner at a time.
//   - module: a root module, content-addressed, written and initialised once by [Engine.Prepare].
//   - run: one use of a module. [Engine.Open] makes its [Workspace], which shares the initialised module and owns everything else:
//     the variables, the plan, and the state that could not be saved. [Workspace.Close] removes it.
//   - slot: the right to run an engine. A Workspace holds one from Open to Close, so slots bound the engines that run at once.
//
// An engine is interrupted, not killed, when its context ends: it saves its state and exits. It is killed only when it has not
// done so after [Options.WaitDelay].
package tofu
