// Package hostile tests what an engine can do to its manager: providers, modules and stacks that try to read foreign
// data, run by the real engines as the manager runs them. Each attack also runs without a sandbox, where it must
// succeed to prove that the test works.
package hostile
