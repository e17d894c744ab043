// Package hostile has the tests of what an engine can do to the manager that runs it: providers, modules and stacks that read what is not
// theirs, run by the real engines as the manager runs them. Each is tried without a sandbox too, where it must succeed, or it would show nothing.
package hostile
