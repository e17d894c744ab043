// Package tofu drives one OpenTofu or Terraform CLI through terraform-exec. It knows nothing about
// Kubernetes and makes no decisions about Machines. It creates a folder for a run, starts the
// engine in it, converts the engine's -json stream into a [engine.Report], and classifies errors.
//
// The terms, in the order of use:
//
//   - [Binary]: the CLI, found and checked once by [Find].
//   - [Engine]: the CLI together with a private work folder, which has one owner at a time.
//   - module: a root module, content-addressed, written and initialized once by [Engine.Prepare].
//   - run: one use of a module. [Engine.Open] creates its [Workspace], which shares the initialized
//     module and owns everything else: the variables, the plan, and a state that could not be
//     saved. [Workspace.Close] removes it.
//   - slot: the right to run an engine. A Workspace holds one from Open to Close, so slots limit
//     the number of concurrent engines.
//
// When its context ends, an engine is interrupted, so that it saves its state and exits. It is
// killed only if it has not exited after [Options.WaitDelay].
package tofu
