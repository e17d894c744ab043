// Package provider runs provider plugins as separate processes, which engines attach to instead of
// starting their own for each run. [Start] starts a plugin. A [Pool] lends running plugins, each to
// one run at a time, and kills them. The package knows nothing about Kubernetes or runs.
package provider
